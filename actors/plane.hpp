#pragma once

#include "actors/protocol.hpp"
#include "backends/backend.hpp"
#include "state/store.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace dsec {

/// Wall clock less monotonic clock, in ms.
std::int64_t wall_offset_now();

struct plane_options {
  std::uint64_t capacity = 4096;      ///< Live sandboxes that the node admits.
  std::uint64_t memory_bytes = 0;     ///< Sum of memory limits that it admits; 0: no bound.
  std::uint64_t tombstones = 10'000;  ///< Kept; the oldest go first.
  std::uint32_t reclaims_at_once = 2; ///< Page-outs under way on this node.
  /// How long a backend may take over one verb before it is a fault.
  std::chrono::milliseconds backend_timeout{60'000};
  /// Added to the actor clock to tell wall-clock time. Nothing: what it is now.
  std::int64_t wall_offset_ms = wall_offset_now();
  /// Names a new store's node. Nothing: drawn from /dev/urandom.
  std::optional<std::uint32_t> node_number;
  /// Nothing is adopted if it differs from the store's. Empty: what the kernel says.
  std::string boot_id;
};

/// Registers all messages and the error category, and sets the scheduler (sharing, `workers`,
/// throughput 100).
void configure(caf::actor_system_config& config, unsigned workers);

/// The actors of one process: gateway and one node, joined.
struct plane {
  node_id node;
  cluster_actor cluster;
  node_actor node_handle;
  journal_actor journal;
};

/// Recovers from `store` (a new one gets its node id), reconciles with what `backend` really runs,
/// and serves. Blocks until recovered, so it is called from a plain thread. `store` and `backend`
/// outlive the system. The events of the backend must be wired to `deliver_ended` by the caller.
result<plane>
start_plane(caf::actor_system& system, store& durable, backend& kernel, plane_options options);

/// Ends all actors of `target`, answering what they owe; sandboxes stay as they are. Call it before
/// the system ends, which waits for them.
void stop_plane(const plane& target);

/// For backend_events::ended: passes it to the sandbox's actor. Any thread.
void deliver_ended(const plane& target, const sandbox_id& id, const sandbox_end& end);

} // namespace dsec
