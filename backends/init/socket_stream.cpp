#include "backends/init/socket_stream.hpp"

#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dsec {

namespace {

constexpr size_t pieces_max = 16;

} // namespace

socket_stream::socket_stream(kj::UnixEventPort& port, kj::AutoCloseFd socket)
  : port_{port},
    socket_{kj::mv(socket)},
    readable_{port, socket_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ} {}

kj::Promise<size_t> socket_stream::tryRead(void* buffer, size_t min_bytes, size_t max_bytes) {
  return read_on(static_cast<kj::byte*>(buffer), min_bytes, max_bytes, 0);
}

kj::Promise<size_t>
socket_stream::read_on(kj::byte* to, size_t min_bytes, size_t max_bytes, size_t done) {
  for (;;) {
    const auto n = std::min(max_bytes - done, filled_ - taken_);
    // A message may announce no words at all, and then there is no buffer.
    if (n > 0)
      std::memcpy(to + done, ahead_ + taken_, n);
    taken_ += n;
    done += n;
    if (done >= min_bytes)
      return done;
    // Nothing is ahead from here on.
    KJ_IF_MAYBE (more, more_) {
      auto waiting = kj::mv(*more);
      more_ = nullptr;
      return waiting.then(
        [this, to, min_bytes, max_bytes, done] { return read_on(to, min_bytes, max_bytes, done); });
    }
    const bool direct = max_bytes - done >= sizeof ahead_;
    const auto room = direct ? max_bytes - done : sizeof ahead_;
    const ssize_t got = ::read(socket_, direct ? to + done : ahead_, room);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno != EAGAIN)
      KJ_FAIL_SYSCALL("read", errno);
    if (got == 0)
      return done;
    const auto size = got > 0 ? static_cast<size_t>(got) : 0;
    taken_ = 0;
    filled_ = direct ? 0 : size;
    if (direct)
      done += size;
    if (size == room)
      continue;
    // All of it was read. What comes now is told; an end that had come before is not.
    bool at_end = true;
    KJ_IF_MAYBE (hint, readable_.atEndHint()) {
      at_end = *hint;
    }
    if (got < 0 || !at_end)
      more_ = readable_.whenBecomesReadable();
  }
}

kj::Promise<void> socket_stream::write(const void* buffer, size_t size) {
  return write_on({static_cast<const kj::byte*>(buffer), size}, nullptr);
}

kj::Promise<void> socket_stream::write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) {
  if (pieces.size() == 0)
    return kj::READY_NOW;
  return write_on(pieces[0], pieces.slice(1, pieces.size()));
}

kj::Promise<void> socket_stream::write_on(piece first, kj::ArrayPtr<const piece> rest) {
  for (;;) {
    iovec parts[pieces_max];
    size_t count = 0;
    auto add = [&](piece p) {
      parts[count++] = {const_cast<kj::byte*>(p.begin()), p.size()};
    };
    add(first);
    for (size_t i = 0; i < rest.size() && count < pieces_max; ++i)
      add(rest[i]);
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && errno == EAGAIN)
      return wait_for_room().then([this, first, rest] { return write_on(first, rest); });
    if (sent < 0)
      KJ_FAIL_SYSCALL("sendmsg", errno);
    auto left = static_cast<size_t>(sent);
    while (left >= first.size()) {
      left -= first.size();
      if (rest.size() == 0)
        return kj::READY_NOW;
      first = rest[0];
      rest = rest.slice(1, rest.size());
    }
    first = first.slice(left, first.size());
  }
}

kj::Promise<void> socket_stream::wait_for_room() {
  // A duplicate, since a descriptor is observed once only.
  kj::AutoCloseFd twin{::fcntl(socket_, F_DUPFD_CLOEXEC, 0)};
  if (twin.get() < 0)
    KJ_FAIL_SYSCALL("fcntl", errno);
  auto observer =
    kj::heap<kj::UnixEventPort::FdObserver>(port_, twin.get(),
                                            kj::UnixEventPort::FdObserver::OBSERVE_WRITE);
  auto writable = observer->whenBecomesWritable();
  // The observer goes before the descriptor that it observes.
  return writable.attach(kj::mv(observer)).attach(kj::mv(twin));
}

kj::Promise<void> socket_stream::whenWriteDisconnected() {
  return kj::NEVER_DONE;
}

void socket_stream::shutdownWrite() {
  ::shutdown(socket_, SHUT_WR);
}

void socket_stream::abortRead() {
  ::shutdown(socket_, SHUT_RD);
}

} // namespace dsec
