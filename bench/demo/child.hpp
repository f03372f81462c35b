#pragma once

#include "bench/kernel_calls.hpp"
#include "bench/spawn.hpp"
#include "bench/waits.hpp"
#include "state/error.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace dsec::demo {

/// A program started by us. Dropping it kills it with SIGKILL and reaps it; so does, without the
/// reaping, the end of the thread that started it.
class child {
public:
  static result<child> start(const bench::child_program& what);

  child(child&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)},
      alive_{std::move(other.alive_)},
      status_{other.status_} {}

  child& operator=(child&& other) noexcept;

  ~child();

  pid_t pid() const {
    return pid_;
  }

  /// Can be read from once it has ended.
  int end_descriptor() const {
    return alive_.get();
  }

  /// What became of it, if it has ended: exit code, or 128 + signal.
  std::optional<int> ended();

  /// As `ended`, once it has, or at `until`.
  std::optional<int> wait(bench::deadline until);

  /// As a crash: no chance to tidy up. Reaps it.
  void crash();

private:
  child(pid_t pid, bench::fd alive) : pid_{pid}, alive_{std::move(alive)} {}

  pid_t pid_ = -1;
  bench::fd alive_;
  std::optional<int> status_;
};

/// Path of the running program.
std::string own_program();

} // namespace dsec::demo
