#pragma once

#include "actors/protocol.hpp"
#include "backends/sim/sim_time.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace dsec {

/// What the link does once the wire has carried it.
struct link_delivery {
  std::uint64_t number = 0;
  std::shared_ptr<const std::function<void()>> act;
};

using node_link_actor = node_actor::extend<
  // From the clock.
  caf::reacts_to<link_delivery>>;

struct link_latency {
  std::chrono::microseconds least{200};
  std::chrono::microseconds most{2'000};
};

struct node_link_data {
  static constexpr const char* name = "node_link";

  node_actor node;
  link_latency latency;
  sim_random random{0};
  caf::actor_clock::time_point up_free; ///< The wire keeps order, each way.
  caf::actor_clock::time_point down_free;
  std::uint64_t deliveries = 0;
  std::uint64_t next_request = 0;
  /// Answers a request with an error; called if the node dies.
  std::map<std::uint64_t, std::function<void()>> owed;
};

/// Stands for a node in a simulated gateway: what it is asked travels a wire to `node`, and the
/// answer back. When the node dies, all that it owed is answered with `unavailable`.
node_link_actor::behavior_type node_link(node_link_actor::stateful_pointer<node_link_data> self,
                                         node_actor node, link_latency latency, std::uint64_t seed);

} // namespace dsec

DSEC_MESSAGE(link_delivery, x.number)
