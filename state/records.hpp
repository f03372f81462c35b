#pragma once

#include "state/clocks.hpp"
#include "state/environment.hpp"
#include "state/event_kind.hpp"
#include "state/exec.hpp"
#include "state/ids.hpp"
#include "state/sandbox_lifecycle.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

/// When a job's trainer is silent: after `pause_after` its sandboxes are paused and reclaimed,
/// after `stop_after` (longer) they are stopped. Zero: never.
struct lease_terms {
  std::chrono::milliseconds pause_after{30'000};
  std::chrono::milliseconds stop_after{30 * 60'000};

  friend bool operator==(const lease_terms&, const lease_terms&) = default;
};

/// What brings a preempted sandbox back.
enum class preempt_mode : std::uint8_t {
  until_request, ///< The next request that must run something.
  until_resume,  ///< Only `resume(job)` or a new lease; requests answer `preempted`.
};

std::string_view to_string(preempt_mode x);

enum class job_state : std::uint8_t { active, preempted, closed };

std::string_view to_string(job_state x);

struct job_record {
  job_id id;
  job_state state = job_state::active;
  preempt_mode preempted_until = preempt_mode::until_request; ///< Means something while preempted.
  lease_terms lease;
  std::uint64_t next_index = 0; ///< (job, index) is a sandbox's stable name.
  std::int64_t created_ms = 0;  ///< Wall clock, since the epoch.
};

/// Why a sandbox ended or failed; kept in its tombstone.
enum class end_cause : std::uint8_t {
  none,           ///< It has not.
  stopped,        ///< A caller stopped it, or its job was closed.
  lease_expired,  ///< The trainer was silent for longer than `stop_after`.
  start_failed,   ///< It never ran; `detail` says why.
  self_inflicted, ///< The agent destroyed its own sandbox.
  infrastructure, ///< Ours: dsec-init gone, node rebooted, kernel facility failed.
  time_to_live,   ///< Its time to live ran out.
  rollout_budget, ///< Its rollout budget ran out.
  idle,           ///< Nobody used it for its idle time-out, and `on_idle` is stop.
};

inline constexpr auto end_cause_last = end_cause::idle;

std::string_view to_string(end_cause x);

struct sandbox_record {
  sandbox_id id;
  job_id job;
  std::uint64_t index = 0;
  std::string idempotency_key; ///< Empty: none.
  dsec::environment environment;
  lease_terms lease;
  sandbox_clocks clocks;
  sandbox_state is = sandbox_state::pending;
  /// Where the actor is heading: running, paused, reclaimed or terminated.
  sandbox_state wanted = sandbox_state::running;
  /// Set by preempt(until_resume): requests do not thaw it.
  bool held = false;
  end_cause cause = end_cause::none;
  std::string detail;
  std::int64_t created_ms = 0;
  std::int64_t ended_ms = 0;
  /// The last change of its state that the job's events tell, so that none is told twice.
  event_kind told = event_kind::created;
  /// Processes whose start the job's events tell, and whose end they do not. Of one that has
  /// ended: those that went with it, whose end is told with its own.
  std::vector<exec_id> processes;
};

/// One recorded exec of a sandbox's trajectory.
struct step_record {
  sandbox_id sandbox;
  std::uint64_t step = 0;
  dsec::exec_id exec = 0;
  std::string request_digest;
  std::optional<exec_result> result; ///< Absent: begun, outcome not yet durable.
};

/// What one state directory knows of itself.
struct meta_record {
  node_id node;
  std::string boot_id;             ///< /proc/sys/kernel/random/boot_id when it was last opened.
  std::uint64_t epoch = 0;         ///< One more at every open; fences older processes.
  std::uint64_t next_sequence = 1; ///< No sandbox id at or above it was ever given out.
};

} // namespace dsec
