#pragma once

#include <filesystem>
#include <string>

namespace dsec {

/// The GNU build id of a 64-bit ELF program, in hex; empty if it has none or cannot be read.
std::string build_id(const std::filesystem::path& program);

} // namespace dsec
