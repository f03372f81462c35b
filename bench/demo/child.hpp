#pragma once

#include "state/error.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec::demo {

/// A program started by us. Dropping it kills it with SIGKILL and reaps it.
class child {
public:
  /// Starts `argv` (argv[0] is the program's path) with our standard output and error and `env`
  /// added to our environment.
  static result<child> start(const std::vector<std::string>& argv,
                             const std::vector<std::pair<std::string, std::string>>& env = {});

  child(child&& other) noexcept : pid_{std::exchange(other.pid_, -1)}, status_{other.status_} {}

  child& operator=(child&& other) noexcept;

  ~child();

  pid_t pid() const {
    return pid_;
  }

  /// What became of it, if it has ended: exit code, or 128 + signal.
  std::optional<int> ended();

  /// As `ended`, after at most `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience);

  /// As a crash: no chance to tidy up. Reaps it.
  void crash();

private:
  explicit child(pid_t pid) : pid_{pid} {}

  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// Path of the running program.
std::string own_program();

} // namespace dsec::demo
