#include "backends/init/lease.hpp"

#include "backends/init/longest.hpp"

#include <algorithm>
#include <ctime>

namespace dsec::init {

namespace {

/// The event loop's timer stands still in a suspend, so the clock is looked at now and then.
constexpr std::uint64_t sleep_max_ms = 30'000;

/// How late a look at the clock may come. Later means that this process did not run: whatever the
/// trainer said meanwhile is still unread.
constexpr std::uint64_t late_max_ms = 500;

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
  excused_ = false;
  set(pause_in_ms, stop_in_ms);
}

void lease::set(std::uint64_t pause_in_ms, std::uint64_t stop_in_ms) {
  pause_in_ms_ = std::min(pause_in_ms, longest_ms);
  stop_in_ms_ = std::min(stop_in_ms, longest_ms);
  const auto now = boot_ms();
  pause_at_ = pause_in_ms_ ? now + pause_in_ms_ : 0;
  stop_at_ = stop_in_ms_ ? now + stop_in_ms_ : 0;
  look_at_ = now;
  task_ = watch().eagerlyEvaluate([](kj::Exception&&) {});
}

void lease::renew_again() {
  renew(pause_in_ms_, stop_in_ms_);
}

kj::Promise<void> lease::watch() {
  const auto now = boot_ms();
  const bool due = (pause_at_ != 0 && now >= pause_at_) || (stop_at_ != 0 && now >= stop_at_);
  if (due && now > look_at_ + late_max_ms && !excused_) {
    // Once: a machine that is always late must not keep the sandboxes of the dead.
    excused_ = true;
    if (pause_at_ != 0)
      pause_at_ = now + pause_in_ms_;
    if (stop_at_ != 0)
      stop_at_ = now + stop_in_ms_;
  }
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
  look_at_ = now + sleep;
  return timer_.afterDelay(static_cast<std::int64_t>(sleep) * kj::MILLISECONDS).then([this] {
    return watch();
  });
}

} // namespace dsec::init
