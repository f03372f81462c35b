#include "tests/scenarios/local_terminal.hpp"

#include "bench/waits.hpp"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdexcept>
#include <termios.h>
#include <unistd.h>

namespace dsec::test {

using namespace std::chrono_literals;

namespace {

winsize kernels(terminal_size size) {
  winsize x{};
  x.ws_row = size.rows;
  x.ws_col = size.columns;
  return x;
}

} // namespace

local_terminal::local_terminal(const std::vector<std::string>& argv, terminal_size size) {
  const auto wanted = kernels(size);
  if (::openpty(&outer_, &inner_, nullptr, nullptr, &wanted) != 0)
    throw std::runtime_error{"openpty"};
  ::fcntl(outer_, F_SETFD, FD_CLOEXEC);
  ::fcntl(inner_, F_SETFD, FD_CLOEXEC);
  std::vector<char*> words;
  for (const auto& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setsid();
    ::ioctl(inner_, TIOCSCTTY, 0);
    for (int fd : {0, 1, 2})
      ::dup2(inner_, fd);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
}

local_terminal::~local_terminal() {
  if (pid_ > 0) {
    kill(SIGKILL);
    wait();
  }
  ::close(outer_);
  ::close(inner_);
}

void local_terminal::types(const std::string& keys) {
  if (::write(outer_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error{"type"};
}

void local_terminal::resizes(terminal_size size) {
  const auto wanted = kernels(size);
  ::ioctl(outer_, TIOCSWINSZ, &wanted);
}

bool local_terminal::read_some(std::chrono::milliseconds patience) {
  if (!bench::wait_readable(outer_, bench::within(patience)))
    return false;
  char buffer[4096];
  const auto n = ::read(outer_, buffer, sizeof buffer);
  if (n > 0)
    text_.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

bool local_terminal::sees(const std::string& text) {
  const auto until = bench::within(20s);
  while (text_.find(text) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
    if (left <= 0ms || !read_some(left))
      return false;
  }
  return true;
}

bool local_terminal::is_cooked() const {
  termios now{};
  ::tcgetattr(inner_, &now);
  return (now.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG);
}

void local_terminal::kill(int number) const {
  ::kill(pid_, number);
}

int local_terminal::wait() {
  // A program that has to write what nobody reads does not end.
  const auto ended = bench::watch_process(pid_);
  const auto until = bench::within(30s);
  while (std::chrono::steady_clock::now() < until) {
    pollfd ready[] = {{outer_, POLLIN, 0}, {ended.get(), POLLIN, 0}};
    if (::poll(ready, 2, 1000) <= 0)
      continue;
    if (ready[0].revents != 0)
      read_some(0ms);
    if (ready[1].revents != 0)
      break;
  }
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) {
    kill(SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace dsec::test
