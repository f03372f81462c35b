#pragma once

#include "state/process.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace dsec::test {

/// A program on a terminal, as a person has it. Killed when it goes out of scope.
class local_terminal {
public:
  local_terminal(const std::vector<std::string>& argv, terminal_size size);
  ~local_terminal();
  local_terminal(const local_terminal&) = delete;
  local_terminal& operator=(const local_terminal&) = delete;

  void types(const std::string& keys);
  void resizes(terminal_size size);

  /// Until the screen shows `text`, at most 20 s.
  bool sees(const std::string& text);

  /// All it has shown.
  const std::string& text() const {
    return text_;
  }

  /// Lines, echo and signals are the terminal's, as a shell leaves it.
  bool is_cooked() const;

  void kill(int number) const;

  /// Exit code, or 128 + signal; what is still shown meanwhile is read.
  int wait();

private:
  /// What there is to read within `patience`; false at the end of time.
  bool read_some(std::chrono::milliseconds patience);

  int outer_ = -1;
  int inner_ = -1; ///< Held, so that it can be looked at when the program has ended.
  pid_t pid_ = -1;
  std::string text_;
};

} // namespace dsec::test
