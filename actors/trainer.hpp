#pragma once

#include "actors/protocol.hpp"
#include "actors/scenario.hpp"
#include "backends/sim/sim_time.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace dsec {

/// The next thing that one agent does.
struct agent_turn {
  std::uint64_t agent = 0;
  std::uint64_t number = 0; ///< An older one is void.
};

struct begin_training {};

struct begin_preemption {
  std::size_t which = 0;
};

struct end_preemption {};

/// What became of a job so far.
struct training_report {
  std::uint64_t finished = 0;
  std::uint64_t steps = 0;
  std::uint64_t replayed = 0;  ///< Steps sent again, after a node had died.
  std::uint64_t preempted = 0; ///< Requests that a preemption refused.
  std::uint64_t failed = 0;    ///< Sandboxes that ended before their agent had.
  bool done = false;
};

using trainer_actor = caf::typed_actor<
  // From the clock.
  caf::reacts_to<begin_training>,
  // From the clock.
  caf::reacts_to<agent_turn>,
  // From the clock.
  caf::reacts_to<begin_preemption>,
  // From the clock.
  caf::reacts_to<end_preemption>>;

struct trainer_agent {
  sandbox_id id;
  sandbox_actor sandbox;
  std::uint64_t turn = 0;
  std::uint64_t step = 0;
  bool sent = false; ///< The present step was sent before.
  bool ended = false;
};

struct trainer_data {
  static constexpr const char* name = "trainer";

  scenario_job plan;
  lease_terms lease;
  dsec::environment environment;
  cluster_actor cluster;
  job_actor job;
  sim_random random{0};
  std::vector<trainer_agent> agents;
  std::map<caf::actor_addr, std::uint64_t> by_actor;
  training_report* report = nullptr;
};

/// A simulated training run: opens its job, creates its sandboxes, and lets each agent think and
/// act until it is done. Writes what happened into `report`, which outlives it.
trainer_actor::behavior_type trainer(trainer_actor::stateful_pointer<trainer_data> self,
                                     scenario_job plan, lease_terms lease, cluster_actor cluster,
                                     std::uint64_t seed, training_report* report);

} // namespace dsec

DSEC_MESSAGE(agent_turn, x.agent, x.number)
DSEC_MESSAGE(begin_training)
DSEC_MESSAGE(begin_preemption, x.which)
DSEC_MESSAGE(end_preemption)
