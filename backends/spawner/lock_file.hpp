#pragma once

#include "backends/spawner/descriptor.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace dsec::spawner {

/// What <run>/<name>.lock says of the process that holds it.
/// The name is a sandbox id, or that of a slot before there is one.
struct lock_content {
  std::uint32_t slot = 0;
  pid_t pid = 0;
  bool live = false; ///< Built: its dsec-init listens.
};

/// Takes the lock and writes `content`. Empty, with errno, if somebody has it or it cannot be
/// written.
descriptor take_lock(int run_dir, const std::string& name, const lock_content& content);

/// Gives a lock that is held another name. Returns 0 or an errno value.
int rename_lock(int run_dir, const std::string& from, const std::string& to);

/// Returns 0 or an errno value.
int write_lock(int lock, const lock_content& content);

/// Nothing if there is no lock or its holder died before it wrote.
std::optional<lock_content> read_lock(int run_dir, const std::string& name);

/// Whether a process holds it.
bool is_locked(int run_dir, const std::string& name);

} // namespace dsec::spawner
