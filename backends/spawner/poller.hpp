#pragma once

#include "backends/spawner/descriptor.hpp"

#include <sys/epoll.h>

#include <cstdint>

namespace dsec::spawner {

/// Who an event is for.
enum class source : std::uint8_t {
  listener,
  signals,
  networks,
  sweeper,
  connection, ///< By serial.
  report,     ///< A build's pipe, by the sandbox's serial.
  pidfd,      ///< An adopted dsec-init, by serial.
  events,     ///< cgroup.events of a sandbox that was killed, by serial.
};

struct event {
  source from;
  std::uint64_t serial;
  std::uint32_t what; ///< EPOLLIN and so on.
};

/// The event loop's epoll. Descriptors leave it when they are closed. Watching one takes memory of
/// the kernel's, so it may be refused: false, with errno.
class poller {
public:
  poller() : epoll_{::epoll_create1(EPOLL_CLOEXEC)} {}

  bool add(int fd, source from, std::uint64_t serial = 0, std::uint32_t what = EPOLLIN) {
    return control(EPOLL_CTL_ADD, fd, from, serial, what);
  }

  bool change(int fd, source from, std::uint64_t serial, std::uint32_t what) {
    return control(EPOLL_CTL_MOD, fd, from, serial, what);
  }

  /// Waits at most `timeout_ms` (-1: for ever) and hands every event to `handle`.
  template <class Handle>
  void wait(int timeout_ms, Handle handle) {
    epoll_event found[64];
    int count = ::epoll_wait(epoll_.get(), found, 64, timeout_ms);
    for (int i = 0; i < count; ++i)
      handle(event{static_cast<source>(found[i].data.u64 >> serial_bits),
                   found[i].data.u64 & ((1ull << serial_bits) - 1), found[i].events});
  }

private:
  static constexpr int serial_bits = 56;

  bool control(int verb, int fd, source from, std::uint64_t serial, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.u64 = (static_cast<std::uint64_t>(from) << serial_bits) | serial;
    return ::epoll_ctl(epoll_.get(), verb, fd, &event) == 0;
  }

  descriptor epoll_;
};

} // namespace dsec::spawner
