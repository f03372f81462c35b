#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace dsec {

/// Writes a file, and the folders above it.
void write_file(const std::filesystem::path& path, std::string_view content);

/// One and the same tree (files of many sizes, hard links, symbolic links, odd names and modes,
/// fixed times), made in an order that `seed` draws.
void write_sample_tree(const std::filesystem::path& root, std::uint64_t seed);

} // namespace dsec
