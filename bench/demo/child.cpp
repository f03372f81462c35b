#include "bench/demo/child.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <signal.h>
#include <system_error>

namespace dsec::demo {

result<child> child::start(const bench::child_program& what) {
  try {
    child started{bench::start_program(what), {}};
    started.alive_ = bench::watch_process(started.pid_);
    bench::checked(started.alive_.get(), "watch " + what.argv[0]);
    return started;
  } catch (const std::system_error& failure) {
    return error{errc::unavailable, failure.what()};
  }
}

child& child::operator=(child&& other) noexcept {
  crash();
  pid_ = std::exchange(other.pid_, -1);
  alive_ = std::move(other.alive_);
  status_ = other.status_;
  return *this;
}

child::~child() {
  crash();
}

std::optional<int> child::ended() {
  if (pid_ < 0 || status_)
    return status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

std::optional<int> child::wait(bench::deadline until) {
  if (pid_ >= 0 && !status_)
    bench::wait_readable(alive_.get(), until);
  return ended();
}

void child::crash() {
  if (pid_ < 0 || ended())
    return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR)
    ;
  status_ = 128 + SIGKILL;
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

} // namespace dsec::demo
