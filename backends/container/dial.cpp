#include "backends/container/dial.hpp"

#include "backends/init/socket_stream.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace dsec {

namespace {

/// A connected socket, or errno as a negative number.
int connect_now(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto text = path.string();
  if (text.size() >= sizeof address.sun_path)
    return -ENAMETOOLONG;
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return fd;
  int number = errno;
  ::close(fd);
  return -number;
}

} // namespace

kj::Promise<result<kj::Own<kj::AsyncIoStream>>> dial(io_loop& loop, std::filesystem::path path) {
  using stream = result<kj::Own<kj::AsyncIoStream>>;
  int fd = connect_now(path);
  if (fd >= 0)
    return stream{kj::heap<socket_stream>(loop.port(), kj::AutoCloseFd{fd})};
  if (fd == -EAGAIN) // Its accept queue is full.
    return loop.timer().afterDelay(1 * kj::MILLISECONDS).then([&loop, path] {
      return dial(loop, path);
    });
  auto what = fmt::format("connect to {}", path.string());
  if (fd == -ECONNREFUSED)
    return stream{error{errc::not_found, fmt::format("{}: {}", what, ::strerror(-fd))}};
  return stream{errno_error(-fd, what)};
}

} // namespace dsec
