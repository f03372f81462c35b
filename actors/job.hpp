#pragma once

#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <map>
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
  /// Which node a key went to, so that its repetition goes there too.
  std::map<std::string, node_id> placed;
  bool ticking = false;
};

/// One training run. Renews its lease for as long as the process lives and the job is open.
job_inside::behavior_type job(job_inside::stateful_pointer<job_data> self, job_record record,
                              job_services services, std::vector<join_node> nodes);

} // namespace dsec
