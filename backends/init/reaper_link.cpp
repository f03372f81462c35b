#include "backends/init/reaper_link.hpp"

#include "backends/kill_point.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace dsec::init {

reaper_link::reaper_link(kj::UnixEventPort& port, kj::AutoCloseFd socket)
  : socket_{kj::mv(socket)},
    observer_{port, socket_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ} {}

result<void>
reaper_link::send(const void* bytes, std::size_t size, const std::vector<int>& descriptors) {
  iovec part{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) unsigned char
    control[CMSG_SPACE(sizeof(int) * (reaper::descriptors_fixed + reaper::joins_max))]{};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  }
  kill_point(crash_role::init);
  if (::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return errno_error(errno, "ask PID 1 of the sandbox");
  kill_point(crash_role::init);
  return {};
}

result<void>
reaper_link::spawn(const reaper::spawn_request& request, const std::vector<int>& descriptors) {
  return send(&request, sizeof request, descriptors);
}

result<void> reaper_link::signal(std::uint64_t exec_id, int number) {
  reaper::signal_request request;
  request.number = number;
  request.exec_id = exec_id;
  return send(&request, sizeof request, {});
}

kj::Promise<void> reaper_link::run(std::function<void(const reaper::event&)> tell) {
  for (;;) {
    reaper::event event;
    ssize_t n = ::recv(socket_, &event, sizeof event, MSG_DONTWAIT);
    if (n == static_cast<ssize_t>(sizeof event)) {
      tell(event);
      continue;
    }
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return observer_.whenBecomesReadable().then(
        [this, tell = std::move(tell)]() mutable { return run(std::move(tell)); });
    return kj::READY_NOW;
  }
}

} // namespace dsec::init
