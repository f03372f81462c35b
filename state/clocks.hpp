#pragma once

#include "state/error.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace dsec {

/// What becomes of a sandbox that nobody used for its idle time-out.
enum class idle_action : std::uint8_t {
  reclaim, ///< It is paused and its memory given back; the next request brings it back.
  stop,    ///< It ends, with end_cause::idle.
};

std::string_view to_string(idle_action x);

inline constexpr std::chrono::milliseconds clock_max{365ll * 24 * 3600 * 1000};

/// The clocks of one sandbox, beside the deadline of each command. Zero: that clock does not run.
/// Each at most `clock_max`. All are durable: they go on over every restart of ours, and the first
/// two are kept by the sandbox's own supervisor, so they hold while no node process runs.
struct sandbox_clocks {
  /// Wall-clock time from its creation to its end, whatever it does, frozen or not. Then it ends
  /// with end_cause::time_to_live; commands under way end as outcome_kind::expired.
  std::chrono::milliseconds time_to_live{0};
  /// Time in which it may run, from when it first runs; while it is paused or reclaimed the clock
  /// stands, so a preemption costs a rollout nothing. Then it ends with
  /// end_cause::rollout_budget; commands under way end as outcome_kind::budget_spent.
  std::chrono::milliseconds rollout_budget{0};
  /// Time without a command, process or file operation under way, from the end of the last one. A
  /// silent command is never idle. After a restart of the node it begins anew.
  std::chrono::milliseconds idle_timeout{0};
  /// Holds for every time-out, not for the first alone.
  idle_action on_idle = idle_action::reclaim;

  friend bool operator==(const sandbox_clocks&, const sandbox_clocks&) = default;
};

/// invalid_argument with field, value and limit, or nothing.
result<void> validate(const sandbox_clocks& x);

} // namespace dsec
