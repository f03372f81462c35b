#pragma once

#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <map>

namespace dsec {

struct images_data {
  static constexpr const char* name = "images";

  /// Counted from the records by whoever spawns the sandboxes; never stored.
  std::map<layer_digest, std::uint64_t> uses;
};

/// Whether a layer exists is the backend's to say, when it starts a sandbox on it.
images_actor::behavior_type
images(images_actor::stateful_pointer<images_data> self, std::vector<layer_digest> in_use);

} // namespace dsec
