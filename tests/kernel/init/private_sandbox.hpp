#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dsec::test {

struct private_sandbox_options {
  std::uint64_t memory_bytes = 128 << 20;
  std::uint32_t processes = 64;
  std::uint64_t disk_bytes = 32 << 20;
  std::uint64_t pause_after_ms = 0;
  std::uint64_t stop_after_ms = 0;
  bool kernel_log = true; ///< false: dsec-init finds nothing in it.
};

/// A sandbox as the spawner would build it, in small: user, pid and mount namespaces, a root of
/// busybox on a tmpfs, control groups of its own, the reaper as PID 1 and a real dsec-init in a
/// process of its own. Everything is gone when it is destroyed.
class private_sandbox {
public:
  /// Why such a sandbox cannot be built here, or "".
  static std::string missing();

  explicit private_sandbox(private_sandbox_options options = {});
  ~private_sandbox();
  private_sandbox(const private_sandbox&) = delete;

  std::string socket_path() const;
  /// Content of run/<id>.end, waiting up to `wait_ms` for it to appear; "" if it does not.
  std::string tombstone(int wait_ms) const;
  /// Host pids in the payload's groups.
  std::vector<pid_t> payload_pids() const;
  /// Waits until no process is left there; false after `wait_ms`.
  bool payload_empties(int wait_ms) const;
  /// Waits until dsec-init has ended by itself; false after `wait_ms`.
  bool supervisor_ended(int wait_ms);

  pid_t supervisor() const {
    return supervisor_;
  }

  pid_t reaper() const {
    return reaper_;
  }

private:
  std::string group(const char* hierarchy) const;
  std::string payload() const;

  std::string folder_;
  std::string name_;
  pid_t supervisor_ = -1;
  pid_t reaper_ = -1;
  bool supervisor_reaped_ = false;
};

} // namespace dsec::test
