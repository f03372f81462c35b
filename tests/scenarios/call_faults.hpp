#pragma once

#include "bench/kernel_calls.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dsec::test {

/// Lets kernel calls of a program and of all that it starts fail as the kernel itself would fail
/// them: a seccomp filter hands every call that can fail for want of something (memory, space,
/// descriptors, rights) to this object, which lets it through or answers with an errno value. The
/// program knows nothing of it. Needs root. Outlive the program: without this, those calls are
/// ENOSYS for it.
class call_faults {
public:
  /// Starts `argv`, waits until it ends (a daemon has its own child by then) and keeps watching
  /// what it has started. Throws std::system_error; once per object, in a process without threads
  /// that hold locks.
  explicit call_faults(const std::vector<std::string>& argv);
  ~call_faults();
  call_faults(const call_faults&) = delete;
  call_faults& operator=(const call_faults&) = delete;

  /// Exit code of `argv`.
  int code() const {
    return code_;
  }

  /// From now on calls count from 1; the n-th fails with `number`. Those that give back what is
  /// held (close, unlink, umount, rmdir, kill) are neither counted nor ever failed.
  void arm(std::uint64_t n, int number);

  struct outcome {
    std::uint64_t counted = 0;
    std::string failed; ///< "mkdirat of dsec-spawner"; empty: none was the n-th.
  };

  /// Nothing fails any more; what happened since `arm`.
  outcome disarm();

private:
  void watch();
  int verdict(std::uint32_t process, int call);

  int code_ = -1;
  bench::fd listener_;
  bench::fd end_; ///< Becomes readable when the watch is to end.
  std::mutex mutex_;
  std::uint64_t fails_at_ = 0; ///< 0: nothing is counted.
  int number_ = 0;
  outcome seen_;
  std::thread thread_;
};

} // namespace dsec::test
