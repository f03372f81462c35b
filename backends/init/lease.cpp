#include "backends/init/lease.hpp"

#include <algorithm>
#include <ctime>

namespace dsec::init {

namespace {

/// The event loop's timer stands still in a suspend, so the clock is looked at now and then.
constexpr std::uint64_t sleep_max_ms = 30'000;

std::uint64_t boot_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000
         + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

} // namespace

lease::lease(kj::Timer& timer, std::function<void()> pause, std::function<void()> stop)
  : timer_{timer},
    pause_{std::move(pause)},
    stop_{std::move(stop)} {}

void lease::renew(std::uint64_t pause_in_ms, std::uint64_t stop_in_ms) {
  pause_in_ms_ = pause_in_ms;
  stop_in_ms_ = stop_in_ms;
  const auto now = boot_ms();
  pause_at_ = pause_in_ms ? now + pause_in_ms : 0;
  stop_at_ = stop_in_ms ? now + stop_in_ms : 0;
  task_ = watch().eagerlyEvaluate([](kj::Exception&&) {});
}

void lease::renew_again() {
  renew(pause_in_ms_, stop_in_ms_);
}

kj::Promise<void> lease::watch() {
  const auto now = boot_ms();
  if (pause_at_ != 0 && now >= pause_at_) {
    pause_at_ = 0;
    pause_();
  }
  if (stop_at_ != 0 && now >= stop_at_) {
    stop_at_ = 0;
    stop_();
  }
  auto sleep = sleep_max_ms;
  for (auto at : {pause_at_, stop_at_})
    if (at != 0)
      sleep = std::min(sleep, at - now);
  if (pause_at_ == 0 && stop_at_ == 0)
    return kj::READY_NOW;
  return timer_.afterDelay(static_cast<std::int64_t>(sleep) * kj::MILLISECONDS).then([this] {
    return watch();
  });
}

} // namespace dsec::init
