#pragma once

#include "actors/job.hpp"
#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace dsec {

/// A job and its actor, of which there is none while `down` says why.
struct job_entry {
  job_inside actor;
  std::uint32_t lives = 0; ///< How often it was spawned by this process.
  std::optional<error> down;
};

struct cluster_data {
  static constexpr const char* name = "cluster";

  job_services services;
  std::map<node_id, node_actor> nodes;
  std::map<job_id, job_entry> jobs;
  open_answers owed;
};

/// The gateway's root. `jobs` is what the store holds; each goes on where it was. A job whose actor
/// dies is started anew from the store, at most `lives_max` times; meanwhile it is unavailable.
cluster_actor::behavior_type cluster(cluster_actor::stateful_pointer<cluster_data> self,
                                     std::vector<job_record> jobs, journal_actor journal,
                                     std::int64_t wall_offset_ms);

} // namespace dsec
