#pragma once

#include "actors/effects.hpp"
#include "actors/open_answers.hpp"
#include "actors/plane.hpp"
#include "actors/sandbox.hpp"
#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dsec {

/// What a node starts from.
struct node_seed {
  meta_record meta; ///< With this life's epoch.
  bool rebooted = false;
  std::vector<sandbox_record> sandboxes;
  std::vector<step_record> steps; ///< Of those that live.
  /// How many steps those that have ended have.
  std::unordered_map<sandbox_id, std::uint64_t> steps_of_ended;
};

struct node_services {
  journal_actor journal;
  effects kernel;
};

struct node_entry {
  sandbox_inside actor; ///< Null once it has ended, and while `down` says why.
  sandbox_record_ptr record;
  std::uint64_t steps = 0;
  std::uint32_t lives = 0; ///< How often its actor was spawned by this process.
  /// Its actor died; whoever asks for it is told this.
  std::optional<error> down;
};

struct node_job {
  std::set<sandbox_id> live;
  /// Creations that are not yet durable. Verbs on the whole job wait for them, so that they miss
  /// nobody.
  std::size_t creating = 0;
  std::deque<std::function<void()>> deferred;
};

struct node_data {
  static constexpr const char* name = "node";

  plane_options options;
  node_services services;
  reclaimer_actor reclaimer;
  images_actor images;
  meta_record meta;
  std::uint64_t next_sequence = 1; ///< Below `meta.next_sequence`, which is durable.

  std::map<sandbox_id, node_entry> sandboxes;
  std::map<job_id, node_job> jobs;
  std::map<std::pair<job_id, std::string>, sandbox_id> keys;
  std::map<caf::actor_id, sandbox_id> by_actor;
  /// Ended sandboxes whose actors still answer somebody.
  std::map<caf::actor_id, caf::actor_addr> lingering;
  std::deque<sandbox_id> tombstones; ///< Oldest first.

  std::uint64_t live = 0; ///< Admitted, tear-downs included.
  std::uint64_t memory_bytes = 0;

  std::set<sandbox_id> unsettled;
  std::uint64_t scan = 0; ///< Counts the backend's inventories; only the newest may report.
  bool scanning = false;  ///< It has not reported.
  bool scanned = false;
  std::optional<error> scan_failure;
  std::vector<open_answers::answer<ack>> awaiting_recovery;
  open_answers owed;
};

/// Owns the sandboxes of one machine. Recovers what `seed` speaks of, then serves.
node_inside::behavior_type node(node_inside::stateful_pointer<node_data> self, node_seed seed,
                                node_services services, plane_options options);

} // namespace dsec
