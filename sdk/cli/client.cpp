#include "sdk/cli/client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace dsec {

client::client(kj::AsyncIoContext loop, kj::Own<kj::AsyncIoStream> connected)
  : io{kj::mv(loop)},
    stream{kj::mv(connected)},
    rpc{*stream},
    dsec{rpc.bootstrap().castAs<wire::Dsec>()} {}

result<std::unique_ptr<client>> connect(const std::filesystem::path& state_dir) {
  auto path = (state_dir / "dsec.sock").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return error{errc::invalid_argument, fmt::format("socket path {}: longer than {} bytes", path,
                                                     sizeof address.sun_path - 1)};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) {
    int number = errno;
    if (fd >= 0)
      ::close(fd);
    auto hint = number == ENOENT || number == ECONNREFUSED
                  ? fmt::format("; start one with: dsec --state-dir {} serve", state_dir.string())
                  : std::string{};
    return error{errc::unavailable,
                 fmt::format("no runtime serves {} (connect to {}: {}){}", state_dir.string(), path,
                             std::strerror(number), hint)};
  }
  auto io = kj::setupAsyncIo();
  auto stream = io.lowLevelProvider->wrapSocketFd(
    fd, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
  return std::make_unique<client>(kj::mv(io), kj::mv(stream));
}

} // namespace dsec
