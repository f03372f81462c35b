#include "backends/init/reaper_link.hpp"

#include "backends/kill_point.hpp"

#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace dsec::init {

namespace {

/// PID 1 takes requests faster than they can be made; it is stuck if its queue stays full this
/// long.
constexpr int queue_patience_ms = 1000;

result<kj::AutoCloseFd> memory_of(const std::string& block) {
  kj::AutoCloseFd file{::memfd_create("dsec-exec", MFD_CLOEXEC)};
  if (file.get() < 0)
    return errno_error(errno, "make the argument block");
  if (::write(file, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
    return errno_error(errno, "write the argument block");
  return file;
}

} // namespace

reaper_link::reaper_link(kj::UnixEventPort& port, kj::AutoCloseFd socket)
  : socket_{kj::mv(socket)},
    observer_{port, socket_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ} {}

result<void> reaper_link::send(const void* head, std::size_t head_bytes, const std::string* block,
                               const descriptors& given) {
  iovec parts[2] = {{const_cast<void*>(head), head_bytes}, {}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 1;
  if (block) {
    parts[1] = {const_cast<char*>(block->data()), block->size()};
    message.msg_iovlen = 2;
  }
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int) * reaper::descriptors_max)]{};
  if (given.count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * given.count);
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * given.count);
    std::memcpy(CMSG_DATA(header), given.fds, sizeof(int) * given.count);
  }
  kill_point(crash_role::init);
  for (;;) {
    if (::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
      break;
    pollfd writable{socket_, POLLOUT, 0};
    if (errno != EAGAIN || ::poll(&writable, 1, queue_patience_ms) <= 0)
      return errno_error(errno, "ask PID 1 of the sandbox");
  }
  kill_point(crash_role::init);
  return {};
}

result<void> reaper_link::keep(int input, std::initializer_list<int> joins) {
  reaper::keep_request request;
  descriptors given;
  given.add(input);
  for (int fd : joins)
    if (fd >= 0)
      given.add(fd);
  request.join_count = static_cast<std::uint32_t>(given.count - 1);
  return send(&request, sizeof request, nullptr, given);
}

result<void> reaper_link::spawn(reaper::spawn_request request, const std::string& block,
                                const streams& three, const exec_group& group) {
  descriptors given;
  auto add_if = [&](bool wanted, reaper::spawn_flags flag, int fd) {
    if (!wanted)
      return;
    request.flags |= flag;
    given.add(fd);
  };
  const bool in_file = block.size() > reaper::inline_bytes_max;
  auto file = in_file ? memory_of(block) : result<kj::AutoCloseFd>{kj::AutoCloseFd{}};
  if (!file)
    return file.error();
  request.block_bytes = static_cast<std::uint32_t>(block.size());
  given.add(three.out);
  given.add(three.err);
  add_if(in_file, reaper::has_block, file->get());
  add_if(three.input >= 0, reaper::has_input, three.input);
  add_if(three.status >= 0, reaper::has_status, three.status);
  add_if(group_ != group.number(), reaper::has_group, group.directory());
  auto sent = send(&request, sizeof request, in_file ? nullptr : &block, given);
  if (sent)
    group_ = group.number();
  return sent;
}

result<void> reaper_link::signal(std::uint64_t exec_id, int number) {
  reaper::signal_request request;
  request.number = number;
  request.exec_id = exec_id;
  return send(&request, sizeof request, nullptr, {});
}

void reaper_link::on_event(std::function<void(const reaper::event&)> tell) {
  tell_ = std::move(tell);
}

bool reaper_link::tell_pending() {
  for (;;) {
    reaper::event event;
    const ssize_t n = ::recv(socket_, &event, sizeof event, MSG_DONTWAIT);
    if (n == static_cast<ssize_t>(sizeof event))
      tell_(event);
    else if (n >= 0 || errno != EINTR)
      return n < 0 && errno == EAGAIN;
  }
}

kj::Promise<void> reaper_link::run() {
  if (!tell_pending())
    return kj::READY_NOW;
  return observer_.whenBecomesReadable().then([this] { return run(); });
}

} // namespace dsec::init
