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
  sandbox_clocks clocks;
};

struct preempt_report {
  std::uint64_t sandboxes = 0;
  std::uint64_t reclaimed = 0;
  std::uint64_t failed = 0;
  std::uint64_t before_bytes = 0; ///< Resident before, of all of them together.
  std::uint64_t after_bytes = 0;
};

} // namespace dsec
