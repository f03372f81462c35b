#pragma once

#include "state/error.hpp"

#include <kj/io.h>

#include <filesystem>

namespace dsec {

/// Creates `state_dir` (0700) and takes its lock for as long as the descriptor lives. state_in_use,
/// with the pid of the owner, if another process has it.
result<kj::AutoCloseFd> lock_state(const std::filesystem::path& state_dir);

} // namespace dsec
