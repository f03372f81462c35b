#pragma once

#include "state/error.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace dsec {

/// A program of the machine that does part of the work.
struct child_command {
  std::vector<std::string> argv; ///< argv[0] is looked up in PATH and the sbin directories.
  /// Added to this process's own variables, overriding them.
  std::vector<std::pair<std::string, std::string>> env;
  std::filesystem::path log; ///< Takes both output streams; appended to.
  /// Gives it a mount namespace of its own, so that no mount outlives it. Needs root.
  bool private_mounts = false;
};

/// Where `name` would be run from. Empty if it is not installed.
std::filesystem::path find_program(const std::string& name);

/// Runs it to its end, without standard input; it dies with this thread. unavailable, with the end
/// of what it wrote to its log, if it is not installed or fails. Blocks.
result<void> run(const child_command& command);

} // namespace dsec
