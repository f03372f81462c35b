#pragma once

#include "actors/job.hpp"
#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace dsec {

struct cluster_data {
  static constexpr const char* name = "cluster";

  job_services services;
  std::map<node_id, node_actor> nodes;
  std::map<job_id, job_inside> jobs;
};

/// The gateway's root. `jobs` is what the store holds; each goes on where it was.
cluster_actor::behavior_type cluster(cluster_actor::stateful_pointer<cluster_data> self,
                                     std::vector<job_record> jobs, journal_actor journal,
                                     std::int64_t wall_offset_ms);

} // namespace dsec
