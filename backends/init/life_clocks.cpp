#include "backends/init/life_clocks.hpp"

#include "backends/init/longest.hpp"

#include <algorithm>
#include <ctime>

namespace dsec::init {

namespace {

/// The event loop's timer stands still in a suspend, so the clock is looked at now and then.
constexpr std::int64_t sleep_max_ms = 30'000;

std::int64_t now_ms(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

std::uint64_t left_ms(std::uint64_t total, std::int64_t gone) {
  if (total == 0)
    return 0;
  return static_cast<std::uint64_t>(
    std::max<std::int64_t>(static_cast<std::int64_t>(total) - gone, 1));
}

} // namespace

life_clocks::life_clocks(kj::Timer& timer, std::function<void(which)> passed)
  : timer_{timer},
    passed_{std::move(passed)} {}

void life_clocks::begin(std::uint64_t age_ms) {
  born_ms_ = now_ms(CLOCK_BOOTTIME) - static_cast<std::int64_t>(std::min(age_ms, longest_ms));
  go_on();
}

void life_clocks::set(std::uint64_t time_to_live_ms, std::uint64_t rollout_budget_ms) {
  time_to_live_ms_ = std::min(time_to_live_ms, longest_ms);
  rollout_budget_ms_ = std::min(rollout_budget_ms, longest_ms);
  arm();
}

void life_clocks::stand() {
  if (!running_)
    return;
  spent_ms_ = ran_ms();
  running_ = false;
  arm();
}

void life_clocks::go_on() {
  if (running_)
    return;
  since_ms_ = now_ms(CLOCK_MONOTONIC);
  running_ = true;
  arm();
}

std::int64_t life_clocks::lived_ms() const {
  return now_ms(CLOCK_BOOTTIME) - born_ms_;
}

std::int64_t life_clocks::ran_ms() const {
  return spent_ms_ + (running_ ? now_ms(CLOCK_MONOTONIC) - since_ms_ : 0);
}

std::uint64_t life_clocks::time_to_live_left_ms() const {
  return left_ms(time_to_live_ms_, lived_ms());
}

std::uint64_t life_clocks::rollout_budget_left_ms() const {
  return left_ms(rollout_budget_ms_, ran_ms());
}

void life_clocks::arm() {
  if (time_to_live_ms_ == 0 && rollout_budget_ms_ == 0)
    task_ = kj::READY_NOW;
  else
    task_ = watch().eagerlyEvaluate([](kj::Exception&&) {});
}

kj::Promise<void> life_clocks::watch() {
  if (over_)
    return kj::READY_NOW;
  auto sleep = sleep_max_ms;
  const auto look = [&](which clock, std::uint64_t total, std::int64_t gone, bool runs) {
    if (total == 0 || over_)
      return;
    const auto left = static_cast<std::int64_t>(total) - gone;
    if (left <= 0) {
      over_ = true;
      return passed_(clock);
    }
    if (runs)
      sleep = std::min(sleep, left);
  };
  look(which::time_to_live, time_to_live_ms_, lived_ms(), true);
  look(which::rollout_budget, rollout_budget_ms_, ran_ms(), running_);
  if (over_ || (time_to_live_ms_ == 0 && !running_))
    return kj::READY_NOW;
  return timer_.afterDelay(sleep * kj::MILLISECONDS).then([this] { return watch(); });
}

} // namespace dsec::init
