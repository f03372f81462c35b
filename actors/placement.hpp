#pragma once

#include "actors/wiring.hpp"
#include "placement/placement.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace dsec {

/// A node as the placement actor sees it.
struct placement_node {
  join_node handle;
  node_load said;
  caf::actor_clock::time_point said_at;
  bool asked = false; ///< A question is under way; a node that is down never answers.
  bool heard = false;
};

struct placement_data {
  static constexpr const char* name = "placement";

  std::map<node_id, placement_node> nodes;
  placement_overlay overlay; ///< What was placed since a node last said its load.
  placement_options options{.choices = 16, .age_max = std::chrono::seconds{10}};
  std::mt19937_64 chance{0xd5ec};
  /// Asked before any node has said anything.
  std::vector<std::pair<place_request, caf::typed_response_promise<placement_reply>>> waiting;
};

/// Asks every node for its load once a second and ranks them for whoever wants to create.
placement_inside::behavior_type
placement(placement_inside::stateful_pointer<placement_data> self, std::vector<join_node> nodes);

} // namespace dsec
