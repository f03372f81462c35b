#pragma once

#include "actors/open_answers.hpp"
#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dsec {

struct job_services {
  journal_actor journal;
  placement_inside placement;
  std::int64_t wall_offset_ms = 0;
};

struct job_data {
  static constexpr const char* name = "job";

  job_services services;
  /// `next_index` is the bound that is durable; indices below `next_index` of the actor were given
  /// out.
  job_record record;
  std::uint64_t next_index = 0;
  std::vector<join_node> nodes;
  /// Which node a key went to, so that its repetition goes there too. The nodes' records are what
  /// is durable of it.
  std::map<std::string, node_id> placed;
  /// Whether all keys that a node has are in `placed`. A node that is absent has none if the job is
  /// fresh, and any if it is not.
  std::map<node_id, bool> learnt;
  bool fresh = false; ///< Nothing was created in it before this life of its actor.
  /// Keys of creations under way, and creations that wait for one of them.
  std::set<std::string> creating;
  std::deque<std::function<void()>> waiting;
  open_answers owed;
  bool ticking = false;
};

/// One training run. Renews its lease for as long as the process lives and the job is open.
job_inside::behavior_type job(job_inside::stateful_pointer<job_data> self, job_record record,
                              job_services services, std::vector<join_node> nodes);

} // namespace dsec
