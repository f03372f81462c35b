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

/// So many births lie unread at most: a full socket would take no more.
constexpr unsigned births_unread_max = 32;

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
    gone_ = errno == EPIPE || errno == ECONNRESET;
    pollfd writable{socket_, POLLOUT, 0};
    if (errno != EAGAIN || ::poll(&writable, 1, queue_patience_ms) <= 0)
      return errno_error(errno, "ask PID 1 of the sandbox");
  }
  kill_point(crash_role::init);
  return {};
}

result<void> reaper_link::keep(int input, std::initializer_list<int> joins) {
  int ends[2];
  const int on = 1;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return errno_error(errno, "make the socket of births");
  births_ = kj::AutoCloseFd{ends[0]};
  const kj::AutoCloseFd theirs{ends[1]};
  if (::setsockopt(births_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return errno_error(errno, "set up the socket of births");
  reaper::keep_request request;
  descriptors given;
  given.add(input);
  given.add(theirs);
  for (int fd : joins)
    if (fd >= 0)
      given.add(fd);
  request.join_count = static_cast<std::uint32_t>(given.count - 2);
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
  if (three.terminal)
    request.flags |= reaper::has_terminal;
  add_if(three.status >= 0, reaper::has_status, three.status);
  const auto& account = group.account();
  const std::pair numbers{group.number(), account.number()};
  if (group_ != numbers) {
    add_if(true, reaper::has_group, group.directory());
    for (int tasks : {account.memory_tasks(), account.pids_tasks()}) {
      if (tasks < 0)
        continue;
      given.add(tasks);
      ++request.group_join_count;
    }
  }
  auto sent = send(&request, sizeof request, in_file ? nullptr : &block, given);
  if (sent) {
    group_ = numbers;
    if (++births_unread_ > births_unread_max)
      (void)find_birth(0);
  }
  return sent;
}

result<void> reaper_link::signal(std::uint64_t exec_id, int number, whom to) {
  reaper::signal_request request;
  request.number = number;
  request.exec_id = exec_id;
  request.whole_group = to == whom::process_group;
  return send(&request, sizeof request, nullptr, {});
}

void reaper_link::on_event(std::function<void(const reaper::event&)> tell) {
  tell_ = std::move(tell);
}

std::map<std::uint64_t, reaper_link::outside>::iterator
reaper_link::find_birth(std::uint64_t exec_id) {
  for (;;) {
    if (auto found = born_.find(exec_id); found != born_.end())
      return found;
    reaper::birth told;
    iovec part{&told, sizeof told};
    alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto n = ::recvmsg(births_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR)
      continue;
    const auto* header = n == static_cast<ssize_t>(sizeof told) ? CMSG_FIRSTHDR(&message) : nullptr;
    if (!header) {
      births_unread_ = 0;
      return born_.end();
    }
    if (births_unread_ > 0)
      --births_unread_;
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS)
      continue;
    ucred who;
    std::memcpy(&who, CMSG_DATA(header), sizeof who);
    born_.insert_or_assign(told.exec_id, outside{who.pid, who.uid});
  }
}

reaper_link::outside reaper_link::born(std::uint64_t exec_id) {
  const auto found = find_birth(exec_id);
  return found == born_.end() ? outside{} : found->second;
}

bool reaper_link::tell_pending() {
  for (;;) {
    reaper::event event;
    const ssize_t n = ::recv(socket_, &event, sizeof event, MSG_DONTWAIT);
    if (n != static_cast<ssize_t>(sizeof event)) {
      if (n < 0 && errno == EINTR)
        continue;
      return n < 0 && errno == EAGAIN;
    }
    const bool refused = event.what == reaper::verb::not_started;
    const bool over = event.what == reaper::verb::exited || event.what == reaper::verb::signalled;
    if (over && refused_.erase(event.pid) > 0)
      continue;
    // PID 1 has no more of them.
    if (refused && refused_.size() < reaper::mains_max)
      refused_.insert(event.pid);
    if (const auto found = refused || over ? find_birth(event.exec_id) : born_.end();
        found != born_.end()) {
      event.pid_outside = found->second.pid;
      event.root_outside = found->second.root;
      born_.erase(found);
    }
    tell_(event);
  }
}

kj::Promise<void> reaper_link::run() {
  if (!tell_pending())
    return kj::READY_NOW;
  return observer_.whenBecomesReadable().then([this] { return run(); });
}

} // namespace dsec::init
