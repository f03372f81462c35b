#pragma once

#include "bench/kernel_calls.hpp"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

/// Waiting for other processes, for benches, the demo and the tests. Everything here blocks its
/// thread until the kernel tells, at most until a deadline, and says false when that has passed.

namespace dsec::bench {

using deadline = std::chrono::steady_clock::time_point;

/// The deadline that is `patience` from now.
deadline within(std::chrono::milliseconds patience);

/// Until `descriptor` can be read from, which it can at its end too.
bool wait_readable(int descriptor, deadline until);

/// A descriptor that can be read from once process `pid` has ended. Empty: there is none.
fd watch_process(pid_t pid);

/// Until process `pid` has ended. True as well if there is none. A child is not reaped by it.
bool wait_for_end(pid_t pid, deadline until);

/// Tells of changes of one file, which need not exist yet; its folder must.
class file_watch {
public:
  /// Throws std::system_error if the folder cannot be watched.
  explicit file_watch(const std::filesystem::path& file);

  /// Until the file was made, replaced, removed or written to since the last call, or `other` (-1:
  /// nothing) can be read from. True without a change is possible.
  bool wait(deadline until, int other = -1);

private:
  bool told_of_file();

  std::string name_;
  fd queue_;
};

/// Until `file` exists. Throws std::system_error if its folder cannot be watched.
bool wait_for_file(const std::filesystem::path& file, deadline until);

/// Until cgroup.events of the v2 group in `folder` has this line, as "populated 0". False as well
/// if there is no such group.
bool wait_for_group(const std::string& folder, std::string_view line, deadline until);

/// Asks `holds` every `pause` until it says yes. For conditions alone that the kernel tells nobody
/// of: each use says which those are.
bool ask_until(deadline until, std::chrono::milliseconds pause, const std::function<bool()>& holds);

} // namespace dsec::bench
