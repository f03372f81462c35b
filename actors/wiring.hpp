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

struct stats_done {
  std::uint64_t ticket = 0;
  std::optional<error> failure;
  sandbox_stats stats;
};

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
  // From the backend's thread.
  caf::reacts_to<probe_done>,
  // From the backend's thread.
  caf::reacts_to<fate_done>,
  // From the backend's thread.
  caf::reacts_to<exec_done>,
  // From the backend's thread.
  caf::reacts_to<file_done>,
  // From the backend's thread.
  caf::reacts_to<stats_done>,
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
  std::vector<std::pair<sandbox_id, bool>> live; ///< Second: it is ending.
  std::optional<error> failure;
};

/// A tear-down of something that no record speaks of could not be finished.
struct leak_remains {
  sandbox_id id;
  error failure;
};

struct scan_again {};

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

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, verb_done& x) {
  auto failure = x.failure.value_or(error{});
  return f(caf::meta::type_name("verb_done"), x.epoch, failure, x.report);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, verb_overdue& x) {
  return f(caf::meta::type_name("verb_overdue"), x.epoch);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, stop_again& x) {
  return f(caf::meta::type_name("stop_again"), x.epoch);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, probe_done& x) {
  auto found = x.found ? std::string{to_string(*x.found)} : std::string{};
  return f(caf::meta::type_name("probe_done"), x.probe, found, x.failure);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, fate_done& x) {
  return f(caf::meta::type_name("fate_done"), x.probe, x.end);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, exec_done& x) {
  return f(caf::meta::type_name("exec_done"), x.exec, x.attempt, x.outcome);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, file_done& x) {
  return f(caf::meta::type_name("file_done"), x.ticket, x.outcome);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, stats_done& x) {
  return f(caf::meta::type_name("stats_done"), x.ticket, x.stats);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ended_notice& x) {
  return f(caf::meta::type_name("ended_notice"), x.id, x.end);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, begin_life&) {
  return f(caf::meta::type_name("begin_life"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sandbox_changed& x) {
  return f(caf::meta::type_name("sandbox_changed"), x.record);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_recorded& x) {
  return f(caf::meta::type_name("step_recorded"), x.id);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sandbox_settled& x) {
  return f(caf::meta::type_name("sandbox_settled"), x.id);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, inventory_done& x) {
  return f(caf::meta::type_name("inventory_done"), x.live);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, leak_remains& x) {
  return f(caf::meta::type_name("leak_remains"), x.id, x.failure);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, scan_again&) {
  return f(caf::meta::type_name("scan_again"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, acquire_layers& x) {
  return f(caf::meta::type_name("acquire_layers"), x.layers);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, release_layers& x) {
  return f(caf::meta::type_name("release_layers"), x.layers);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, layer_uses& x) {
  return f(caf::meta::type_name("layer_uses"), x.layer);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, await_recovered&) {
  return f(caf::meta::type_name("await_recovered"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, reclaim_permit&) {
  return f(caf::meta::type_name("reclaim_permit"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, return_permit&) {
  return f(caf::meta::type_name("return_permit"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, gateway_tick&) {
  return f(caf::meta::type_name("gateway_tick"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, nodes_changed& x) {
  return f(caf::meta::type_name("nodes_changed"), x.nodes);
}

} // namespace dsec

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::verb_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::verb_overdue)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::stop_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::probe_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::fate_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::exec_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::file_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::stats_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::ended_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::begin_life)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::sandbox_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::step_recorded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::sandbox_settled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::inventory_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::leak_remains)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::scan_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::acquire_layers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::release_layers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::layer_uses)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::await_recovered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::reclaim_permit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::return_permit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::gateway_tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::nodes_changed)
