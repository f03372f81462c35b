#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace dsec {

/// Virtual time: events in the order of their due time, then of their making. One thread.
class sim_time {
public:
  using duration = std::chrono::nanoseconds;

  duration now() const noexcept {
    return now_;
  }

  void after(duration delay, std::function<void()> event) {
    events_.emplace(std::pair{now_ + delay, made_++}, std::move(event));
  }

  std::optional<duration> next_due() const {
    if (events_.empty())
      return std::nullopt;
    return events_.begin()->first.first;
  }

  /// Runs what is due at or before `to`, then stands there.
  void advance_to(duration to) {
    while (!events_.empty() && events_.begin()->first.first <= to) {
      auto first = events_.extract(events_.begin());
      now_ = first.key().first;
      first.mapped()();
    }
    now_ = std::max(now_, to);
  }

private:
  duration now_{0};
  std::uint64_t made_ = 0;
  std::map<std::pair<duration, std::uint64_t>, std::function<void()>> events_;
};

/// SplitMix64: the same numbers on every platform, which standard distributions do not promise.
class sim_random {
public:
  explicit sim_random(std::uint64_t seed) : state_{seed} {}

  std::uint64_t next() {
    auto z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  /// In [0, n); 0 if n is.
  std::uint64_t below(std::uint64_t n) {
    return n == 0 ? 0 : next() % n;
  }

  bool per_mille(std::uint64_t chance) {
    return below(1000) < chance;
  }

private:
  std::uint64_t state_;
};

} // namespace dsec
