#pragma once

#include <kj/async-io.h>

#include <cstdint>
#include <functional>

namespace dsec::init {

/// The two deadlines of the job's lease, on the clock that runs through a suspend of the machine
/// (CLOCK_BOOTTIME). Carried here so that they hold when the node and the trainer are gone. The
/// trainer's silence counts while this process can hear: after a stall or a suspend of the machine
/// both deadlines count anew, once, so that renewals which lie unread come first.
class lease {
public:
  /// `pause` is called once at the first deadline, `stop` at the second. 0 ms: no such deadline.
  lease(kj::Timer& timer, std::function<void()> pause, std::function<void()> stop);

  /// Sets both, from now.
  void renew(std::uint64_t pause_in_ms, std::uint64_t stop_in_ms);

  /// Sets both as they were set last, from now.
  void renew_again();

private:
  void set(std::uint64_t pause_in_ms, std::uint64_t stop_in_ms);
  kj::Promise<void> watch();

  kj::Timer& timer_;
  std::function<void()> pause_, stop_;
  std::uint64_t pause_in_ms_ = 0, stop_in_ms_ = 0;
  std::uint64_t pause_at_ = 0, stop_at_ = 0; ///< Milliseconds of the clock; 0 = none.
  std::uint64_t look_at_ = 0;                ///< When the clock is to be looked at next.
  bool excused_ = false;                     ///< A stall was, since the trainer was last heard.
  kj::Promise<void> task_ = kj::READY_NOW;
};

} // namespace dsec::init
