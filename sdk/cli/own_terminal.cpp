#include "sdk/cli/own_terminal.hpp"

#include <sys/ioctl.h>

#include <csignal>
#include <termios.h>
#include <unistd.h>

namespace dsec {

namespace {

constexpr int fatal_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

termios before;

void restore_and_end(int number) {
  ::tcsetattr(0, TCSANOW, &before);
  std::signal(number, SIG_DFL);
  ::raise(number);
}

} // namespace

std::optional<terminal_size> own_terminal_size() {
  for (int fd : {0, 1}) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
      return terminal_size{size.ws_row, size.ws_col};
  }
  return std::nullopt;
}

raw_terminal::raw_terminal() {
  if (::tcgetattr(0, &before) != 0)
    return;
  auto wanted = before;
  ::cfmakeraw(&wanted);
  for (int number : fatal_signals)
    std::signal(number, restore_and_end);
  raw_ = ::tcsetattr(0, TCSADRAIN, &wanted) == 0;
}

raw_terminal::~raw_terminal() {
  restore();
}

void raw_terminal::restore() {
  if (!raw_)
    return;
  raw_ = false;
  ::tcsetattr(0, TCSADRAIN, &before);
  for (int number : fatal_signals)
    std::signal(number, SIG_DFL);
}

} // namespace dsec
