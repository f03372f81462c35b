#include "backends/spawner/connections.hpp"

#include "backends/spawner/wire.hpp"
#include "backends/spawner/worker.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <vector>

namespace dsec::spawner {

namespace {

constexpr std::size_t clients_max = 256;
/// Answers that a client leaves unread before it is dropped.
constexpr std::size_t waiting_max = 16'384;
/// A list of thousands of sandboxes is one datagram.
constexpr int send_buffer_bytes = 8 << 20;

/// Read by hand: a static program cannot load the machine's name services.
std::optional<gid_t> group_number(const std::string& name) {
  std::ifstream table{"/etc/group"};
  for (std::string line; std::getline(table, line);) {
    std::string found, password, number;
    std::stringstream fields{line};
    if (std::getline(fields, found, ':') && std::getline(fields, password, ':')
        && std::getline(fields, number, ':') && found == name)
      return static_cast<gid_t>(std::strtoul(number.c_str(), nullptr, 10));
  }
  return std::nullopt;
}

} // namespace

result<void> connections::listen(const std::string& path, const std::string& group) {
  if (!group.empty()) {
    group_ = group_number(group);
    if (!group_)
      return error{errc::not_found, "group: '" + group + "' is not in /etc/group"};
  }
  listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto slash = path.rfind('/');
  descriptor folder{::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // By descriptor, since a socket's path is short and a run directory's may be long.
  auto short_path = "/proc/self/fd/" + std::to_string(folder.get()) + path.substr(slash);
  std::strncpy(address.sun_path, short_path.c_str(), sizeof address.sun_path - 1);
  ::unlink(path.c_str());
  ::umask(0117);
  bool bound =
    listener_ && ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0
    && ::listen(listener_.get(), 128) == 0;
  int number = errno;
  ::umask(022);
  if (!bound)
    return errno_error(number, "listen on " + path);
  if (group_ && ::chown(path.c_str(), 0, *group_) < 0)
    return errno_error(errno, "give " + path + " to group " + group);
  if (!loop_.add(listener_.get(), source::listener))
    return errno_error(errno, "watch " + path);
  return {};
}

bool connections::may_enter(int socket) const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
    return false;
  if (peer.uid == 0 || (group_ && peer.gid == *group_))
    return true;
  std::vector<gid_t> groups(65536 / sizeof(gid_t));
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (!group_ || ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) < 0)
    return false;
  groups.resize(size / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), *group_) != groups.end();
}

std::optional<std::string> connections::accept() {
  descriptor socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket)
    return std::nullopt;
  if (clients_.size() >= clients_max)
    return "there are " + std::to_string(clients_max) + " connections already";
  if (!may_enter(socket.get()))
    return "the peer is neither root nor a member of the group";
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer_bytes, sizeof(int));
  auto serial = next_++;
  if (!loop_.add(socket.get(), source::connection, serial))
    return "it cannot be watched";
  clients_[serial].socket = std::move(socket);
  return std::nullopt;
}

std::optional<std::string> connections::receive(std::uint64_t connection) {
  auto found = clients_.find(connection);
  if (found == clients_.end())
    return std::nullopt;
  std::string bytes(request_bytes_max, '\0');
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  auto size = ::recvmsg(found->second.socket.get(), &message, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR))
    return std::nullopt;
  if (size <= 0 || (message.msg_flags & MSG_TRUNC) != 0) {
    clients_.erase(found);
    return std::nullopt;
  }
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

void connections::send(std::uint64_t connection, std::string datagram) {
  auto found = clients_.find(connection);
  if (found == clients_.end())
    return;
  found->second.waiting.push_back(std::move(datagram));
  if (found->second.waiting.size() > waiting_max)
    clients_.erase(found);
  else
    flush(connection);
}

void connections::flush(std::uint64_t connection) {
  auto found = clients_.find(connection);
  if (found == clients_.end())
    return;
  auto& [socket, waiting] = found->second;
  bool held_back = false;
  while (!waiting.empty()) {
    int number = send_datagram(socket.get(), waiting.front(), -1, MSG_DONTWAIT);
    if (number == EAGAIN) {
      held_back = true;
      break;
    }
    if (number != 0) {
      clients_.erase(found);
      return;
    }
    waiting.pop_front();
  }
  // A client that cannot be watched any more comes back over a new connection.
  if (!loop_.change(socket.get(), source::connection, connection,
                    held_back ? EPOLLIN | EPOLLOUT : static_cast<std::uint32_t>(EPOLLIN)))
    clients_.erase(found);
}

void connections::drop(std::uint64_t connection) {
  clients_.erase(connection);
}

} // namespace dsec::spawner
