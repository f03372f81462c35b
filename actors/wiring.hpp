#pragma once

#include "actors/protocol.hpp"

#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Messages that only our own actors send one another, and the wider interfaces that take them.

namespace dsec {

/// Recorded execs have the number of their step; ids from here on belong to those that are not.
inline constexpr exec_id unrecorded_execs = 1ull << 63;

// -- completions of a sandbox's effects; each carries the number of the attempt that it answers

struct verb_done {
  std::uint64_t epoch = 0;
  std::optional<error> failure;
  reclaim_report report; ///< Of a reclaim.
};

/// The backend was silent for too long.
struct verb_overdue {
  std::uint64_t epoch = 0;
};

struct stop_again {
  std::uint64_t epoch = 0;
};

/// What an adopt found: `found_*`, or why nothing.
struct probe_done {
  std::uint64_t probe = 0;
  std::optional<sandbox_event> found;
  error failure;
  std::vector<exec_id> execs;   ///< Whose outcomes it keeps.
  std::vector<exec_id> running; ///< Those that have not ended.
};

struct fate_done {
  std::uint64_t probe = 0;
  sandbox_end end;
};

struct exec_done {
  exec_id exec = 0;
  std::uint64_t attempt = 0;
  std::shared_ptr<const result<exec_result>> outcome;
};

struct file_done {
  std::uint64_t ticket = 0;
  std::shared_ptr<const result<file_reply>> outcome;
};

struct process_done {
  std::uint64_t ticket = 0;
  std::shared_ptr<const result<process_reply>> outcome;
};

struct stats_done {
  std::uint64_t ticket = 0;
  std::optional<error> failure;
  sandbox_stats stats;
};

/// From the clock: some file operation or reading of counters has waited for long enough.
struct answers_due {};

/// Its clocks were told, or not.
struct clocks_done {
  std::uint64_t attempt = 0;
  std::uint64_t version = 0;
  std::optional<error> failure;
};

/// It may have been unused for long enough.
struct idle_due {
  std::uint64_t timer = 0;
};

/// What is still kept of commands of an earlier life; or how many processes there are.
struct idle_look {
  std::uint64_t look = 0;
  std::vector<exec_id> execs;
  std::optional<std::uint32_t> processes;
};

/// From the clock: events wait for a batch.
struct notes_due {};

/// The sandbox ended without being asked to.
struct ended_notice {
  sandbox_id id;
  sandbox_end end;
};

/// Sent by a sandbox to itself: the first thing it does.
struct begin_life {};

using sandbox_inside = sandbox_actor::extend<
  // To itself.
  caf::reacts_to<begin_life>,
  // To itself, from the backend's thread.
  caf::reacts_to<verb_done>,
  // From the clock.
  caf::reacts_to<verb_overdue>,
  // From the clock.
  caf::reacts_to<stop_again>,
  // From the clock.
  caf::reacts_to<answers_due>,
  // From the clock.
  caf::reacts_to<notes_due>,
  // From the backend's thread.
  caf::reacts_to<probe_done>,
  // From the backend's thread.
  caf::reacts_to<fate_done>,
  // From the backend's thread.
  caf::reacts_to<exec_done>,
  // From the backend's thread.
  caf::reacts_to<file_done>,
  // From the backend's thread.
  caf::reacts_to<process_done>,
  // From the backend's thread.
  caf::reacts_to<stats_done>,
  // From the backend's thread, or the clock.
  caf::reacts_to<clocks_done>,
  // From the clock.
  caf::reacts_to<idle_due>,
  // From the backend's thread.
  caf::reacts_to<idle_look>,
  // From its node.
  caf::reacts_to<ended_notice>>;

// -- a sandbox to its node

using sandbox_record_ptr = std::shared_ptr<const sandbox_record>;

/// Sent after the record is durable.
struct sandbox_changed {
  sandbox_record_ptr record;
};

struct step_recorded {
  sandbox_id id;
};

/// A recovered sandbox was adopted, or is being torn down.
struct sandbox_settled {
  sandbox_id id;
};

struct inventory_done {
  std::uint64_t scan = 0;
  std::vector<std::pair<sandbox_id, bool>> live; ///< Second: it is ending.
  std::optional<error> failure;
};

/// A tear-down of something that no record speaks of could not be finished.
struct leak_remains {
  sandbox_id id;
  error failure;
};

/// Void if a newer scan has begun.
struct scan_again {
  std::uint64_t scan = 0;
};

/// Answers when everything found at the start was adopted or is being torn down.
struct await_recovered {};

using node_inside = node_actor::extend<
  // A sandbox's record changed, durably.
  caf::reacts_to<sandbox_changed>,
  // A step has its outcome, durably.
  caf::reacts_to<step_recorded>,
  // During recovery.
  caf::reacts_to<sandbox_settled>,
  // From the backend's thread.
  caf::reacts_to<inventory_done>,
  // From the backend's thread.
  caf::reacts_to<leak_remains>,
  // From the clock.
  caf::reacts_to<scan_again>,
  // From the backend's thread.
  caf::reacts_to<ended_notice>,
  // Or with the error that keeps it from recovering.
  caf::replies_to<await_recovered>::with<ack>>;

// -- the reclaimer: bounds how many page-outs run at once on a node

struct reclaim_permit {};

struct return_permit {};

using reclaimer_actor = caf::typed_actor<
  // Answers when it is the sender's turn; to be returned.
  caf::replies_to<reclaim_permit>::with<ack>, caf::reacts_to<return_permit>>;

// -- images: which layers live sandboxes stand on

struct acquire_layers {
  std::vector<layer_digest> layers;
};

struct release_layers {
  std::vector<layer_digest> layers;
};

/// How many live sandboxes of this node stand on a layer.
struct layer_uses {
  layer_digest layer;
};

using images_actor = caf::typed_actor<
  // A sandbox was recorded.
  caf::reacts_to<acquire_layers>,
  // It has ended.
  caf::reacts_to<release_layers>,
  // At once.
  caf::replies_to<layer_uses>::with<std::uint64_t>>;

// -- the gateway

struct gateway_tick {};

/// To every job, whenever a node joins.
struct nodes_changed {
  std::vector<join_node> nodes;
};

using placement_inside = placement_actor::extend<
  // From the clock: ask all nodes for their load.
  caf::reacts_to<gateway_tick>,
  // From the cluster.
  caf::reacts_to<nodes_changed>>;

using job_inside = job_actor::extend<
  // Answers when the job is open and durable.
  caf::replies_to<open_job>::with<ack>,
  // From the clock: renew the lease.
  caf::reacts_to<gateway_tick>,
  // From the cluster.
  caf::reacts_to<nodes_changed>>;

} // namespace dsec

DSEC_MESSAGE(verb_done, x.epoch, x.failure, x.report)
DSEC_MESSAGE(probe_done, x.probe, x.found, x.failure, x.execs)
DSEC_MESSAGE(inventory_done, x.scan, x.live, x.failure)
DSEC_MESSAGE(verb_overdue, x.epoch)
DSEC_MESSAGE(stop_again, x.epoch)
DSEC_MESSAGE(fate_done, x.probe, x.end)
DSEC_MESSAGE(exec_done, x.exec, x.attempt, x.outcome)
DSEC_MESSAGE(file_done, x.ticket, x.outcome)
DSEC_MESSAGE(process_done, x.ticket, x.outcome)
DSEC_MESSAGE(stats_done, x.ticket, x.stats)
DSEC_MESSAGE(clocks_done, x.attempt, x.version, x.failure)
DSEC_MESSAGE(idle_due, x.timer)
DSEC_MESSAGE(idle_look, x.look, x.execs, x.processes)
DSEC_MESSAGE(ended_notice, x.id, x.end)
DSEC_MESSAGE(begin_life)
DSEC_MESSAGE(sandbox_changed, x.record)
DSEC_MESSAGE(step_recorded, x.id)
DSEC_MESSAGE(sandbox_settled, x.id)
DSEC_MESSAGE(leak_remains, x.id, x.failure)
DSEC_MESSAGE(scan_again, x.scan)
DSEC_MESSAGE(answers_due)
DSEC_MESSAGE(notes_due)
DSEC_MESSAGE(acquire_layers, x.layers)
DSEC_MESSAGE(release_layers, x.layers)
DSEC_MESSAGE(layer_uses, x.layer)
DSEC_MESSAGE(await_recovered)
DSEC_MESSAGE(reclaim_permit)
DSEC_MESSAGE(return_permit)
DSEC_MESSAGE(gateway_tick)
DSEC_MESSAGE(nodes_changed, x.nodes)
