#pragma once

#include <kj/async-io.h>

#include <cstdint>
#include <functional>

namespace dsec::init {

/// The two clocks that end their sandbox, as state/clocks.hpp draws them. Carried here so that they
/// hold when the node and the trainer are gone. The time to live goes on through a suspend of the
/// machine (CLOCK_BOOTTIME), the rollout budget stands in it, as it does in a freeze.
class life_clocks {
public:
  enum class which { time_to_live, rollout_budget };

  /// `passed` is called once, by the clock that passes first.
  life_clocks(kj::Timer& timer, std::function<void(which)> passed);

  /// Both begin; the sandbox was created `age_ms` ago, and runs from now.
  void begin(std::uint64_t age_ms);

  /// Both as totals from their beginning, in milliseconds; 0: that clock does not run.
  void set(std::uint64_t time_to_live_ms, std::uint64_t rollout_budget_ms);

  /// The sandbox is about to be frozen; it runs again. Repeating either changes nothing.
  void stand();
  void go_on();

  std::uint64_t time_to_live_ms() const {
    return time_to_live_ms_;
  }

  std::uint64_t rollout_budget_ms() const {
    return rollout_budget_ms_;
  }

  /// At least 1 while the clock runs; 0: it does not.
  std::uint64_t time_to_live_left_ms() const;
  std::uint64_t rollout_budget_left_ms() const;

private:
  kj::Promise<void> watch();
  void arm();
  std::int64_t lived_ms() const;
  std::int64_t ran_ms() const;

  kj::Timer& timer_;
  std::function<void(which)> passed_;
  std::uint64_t time_to_live_ms_ = 0, rollout_budget_ms_ = 0;
  std::int64_t born_ms_ = 0;  ///< On the clock of the time to live.
  std::int64_t spent_ms_ = 0; ///< Of the budget, until `since_ms_`.
  std::int64_t since_ms_ = 0; ///< On the clock of the budget; means something while it runs.
  bool running_ = false;
  bool over_ = false;
  kj::Promise<void> task_ = kj::READY_NOW;
};

} // namespace dsec::init
