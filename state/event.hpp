#pragma once

#include "state/event_kind.hpp"
#include "state/exec.hpp"
#include "state/ids.hpp"
#include "state/records.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsec {

/// Something that happened to a sandbox of a job. Events of a job are in one order, told after what
/// they tell is durable, and kept: at most `events_kept_max` of a job, the oldest dropped first.
struct job_event {
  job_id job;
  std::uint64_t cursor = 0; ///< From 1, without gaps, per job. Assigned by the journal.
  /// When the node learned of it, wall clock since the epoch. What happened while no node process
  /// lived (a clock or a lease ended the sandbox) carries the time of the recovery that found it.
  std::int64_t at_ms = 0;
  sandbox_id sandbox;
  std::uint64_t index = 0; ///< (job, index) is the sandbox's stable name.
  event_kind kind = event_kind::created;
  exec_id exec = 0;
  std::optional<std::uint64_t> step;
  std::optional<dsec::outcome> outcome;
  end_cause cause = end_cause::none;
  std::string detail;
};

/// What `x` is now, as an event of its job.
job_event about(const sandbox_record& x, event_kind kind, std::int64_t at_ms);

inline constexpr std::uint64_t events_kept_max = 100'000;

/// Consecutive events of one job.
struct event_page {
  std::vector<job_event> events;
  std::uint64_t next = 1;   ///< The cursor of the first event that is not in it.
  std::uint64_t oldest = 1; ///< The cursor of the oldest event that is kept.
};

} // namespace dsec
