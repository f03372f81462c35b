#include "backends/spawner/worker.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

namespace dsec::spawner {

void close_all_but(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned from = 3;
  for (int fd : keep) {
    if (fd < static_cast<int>(from))
      continue;
    if (fd > static_cast<int>(from))
      ::close_range(from, static_cast<unsigned>(fd) - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(from, ~0u, 0);
}

result<worker>
start_worker(const char* name, std::vector<int> keep, const std::function<void(int socket)>& work) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    return errno_error(errno, std::string{"start worker "} + name);
  descriptor ours{pair[0]};
  descriptor theirs{pair[1]};
  auto spawner = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0)
    return errno_error(errno, std::string{"start worker "} + name);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != spawner)
      ::_exit(0);
    ::prctl(PR_SET_NAME, name);
    int socket = theirs.release();
    keep.push_back(socket);
    close_all_but(std::move(keep));
    work(socket);
    ::_exit(0);
  }
  return worker{pid, std::move(ours)};
}

int send_datagram(int socket, std::string_view bytes, int descriptor_beside, int flags) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor_beside >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor_beside, sizeof(int));
  }
  ssize_t sent;
  do
    sent = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

bool receive_datagram(int socket, std::string& bytes, descriptor* beside, int flags,
                      std::size_t bytes_max) {
  bytes.resize(bytes_max);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size;
  do
    size = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size == 0)
    errno = 0;
  if (size <= 0)
    return false;
  bytes.resize(static_cast<std::size_t>(size));
  if (auto* header = CMSG_FIRSTHDR(&message);
      header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    descriptor received{fd};
    if (beside)
      *beside = std::move(received);
  }
  return true;
}

} // namespace dsec::spawner
