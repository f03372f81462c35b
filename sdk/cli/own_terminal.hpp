#pragma once

#include "state/process.hpp"

#include <optional>

namespace dsec {

/// The size of the terminal that standard input or output is, if one is.
std::optional<terminal_size> own_terminal_size();

/// Standard input's terminal in raw mode, every key as it is typed. It is as it was before again
/// when this goes, and also when the program aborts or is ended by a signal that is fatal at once;
/// nothing helps against SIGKILL. One at a time.
class raw_terminal {
public:
  /// Does nothing if standard input is no terminal.
  raw_terminal();
  ~raw_terminal();
  raw_terminal(const raw_terminal&) = delete;
  raw_terminal& operator=(const raw_terminal&) = delete;

  bool raw() const {
    return raw_;
  }

  /// As it was before, early. Idempotent.
  void restore();

private:
  bool raw_ = false;
};

} // namespace dsec
