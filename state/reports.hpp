#pragma once

#include "state/records.hpp"

#include <cstdint>
#include <string>

namespace dsec {

/// What a caller may know of a sandbox.
struct sandbox_info {
  sandbox_id id;
  job_id job;
  std::uint64_t index = 0;
  sandbox_state state = sandbox_state::pending;
  end_cause cause = end_cause::none; ///< Once it has ended or failed.
  std::string detail;
  std::uint64_t steps = 0; ///< Recorded and durable.
  std::int64_t created_ms = 0;
  std::int64_t ended_ms = 0;
};

/// A state change, told after it is durable. One ordered stream per process.
struct sandbox_change {
  std::uint64_t sequence = 0; ///< From 1, without gaps.
  std::int64_t at_ms = 0;     ///< Wall clock, since the epoch.
  sandbox_id sandbox;
  job_id job;
  sandbox_state state = sandbox_state::pending;
  end_cause cause = end_cause::none;
  std::string detail;
};

struct preempt_report {
  std::uint64_t sandboxes = 0;
  std::uint64_t reclaimed = 0;
  std::uint64_t failed = 0;
  std::uint64_t before_bytes = 0; ///< Resident before, of all of them together.
  std::uint64_t after_bytes = 0;
};

} // namespace dsec
