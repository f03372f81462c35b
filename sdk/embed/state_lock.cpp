#include "sdk/embed/state_lock.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace dsec {

namespace {

std::string owner_of(int fd) {
  char text[32] = {};
  auto n = ::pread(fd, text, sizeof text - 1, 0);
  while (n > 0 && text[n - 1] == '\n')
    text[--n] = 0;
  return n > 0 ? text : "unknown";
}

} // namespace

result<kj::AutoCloseFd> lock_state(const std::filesystem::path& state_dir) {
  std::error_code failed;
  if (auto parent = state_dir.parent_path(); !parent.empty())
    std::filesystem::create_directories(parent, failed);
  if (::mkdir(state_dir.c_str(), 0700) < 0 && errno != EEXIST)
    return errno_error(errno, fmt::format("create state directory {}", state_dir.string()));
  auto path = state_dir / "lock";
  kj::AutoCloseFd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (fd.get() < 0)
    return errno_error(errno, fmt::format("open {}", path.string()));
  if (::flock(fd, LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK)
      return errno_error(errno, fmt::format("lock {}", path.string()));
    return error{errc::state_in_use, fmt::format("open state directory {}: process {} owns it",
                                                 state_dir.string(), owner_of(fd))};
  }
  auto pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd, 0) < 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0)
    return errno_error(errno, fmt::format("write {}", path.string()));
  return kj::mv(fd);
}

} // namespace dsec
