#pragma once

#include "actors/scenario.hpp"

#include <cstdint>

namespace dsec {

struct replay_options {
  std::uint64_t seed = 1;
  /// At the n-th choice between several ready actors (from 1) another one is taken. 0: never.
  std::uint64_t flip = 0;
};

struct replay_report {
  std::uint64_t hash = 0;     ///< Over every delivered message: when, to whom, what.
  std::uint64_t messages = 0; ///< Delivered.
  double virtual_s = 0;
  double wall_s = 0;
  std::uint64_t sandboxes = 0; ///< Asked for.
  std::uint64_t finished = 0;  ///< Their agent took its last step and stopped them.
  std::uint64_t failed = 0;
  std::uint64_t steps = 0;
  std::uint64_t resent_steps = 0;
  std::uint64_t preempted_requests = 0;
  std::uint64_t duplicated_execs = 0; ///< Begun more than once, by the machines' own count.
  std::uint64_t left_behind = 0;      ///< Sandboxes that still hold resources at the end.
  bool complete = false;              ///< Every job came to its end within the limit.
};

/// Runs a scenario through the real actors on simulated machines, on the caller's thread, in
/// virtual time. Equal arguments give equal reports, but for `wall_s`.
replay_report replay(const scenario& plan, const replay_options& options);

} // namespace dsec
