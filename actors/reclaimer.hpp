#pragma once

#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <deque>
#include <set>
#include <utility>

namespace dsec {

struct reclaimer_data {
  static constexpr const char* name = "reclaimer";

  std::uint32_t at_once = 0;
  std::set<caf::actor_id> holders;
  std::deque<std::pair<caf::strong_actor_ptr, caf::typed_response_promise<ack>>> waiting;
};

/// Hands out `at_once` permits, in the order of asking. One that dies with its permit gives it
/// back.
reclaimer_actor::behavior_type
reclaimer(reclaimer_actor::stateful_pointer<reclaimer_data> self, std::uint32_t at_once);

} // namespace dsec
