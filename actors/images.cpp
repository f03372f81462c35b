#include "actors/images.hpp"

namespace dsec {

images_actor::behavior_type
images(images_actor::stateful_pointer<images_data> self, std::vector<layer_digest> in_use) {
  for (const auto& layer : in_use)
    ++self->state.uses[layer];
  return {
    [self](const acquire_layers& x) {
      for (const auto& layer : x.layers)
        ++self->state.uses[layer];
    },
    [self](const release_layers& x) {
      for (const auto& layer : x.layers) {
        auto used = self->state.uses.find(layer);
        if (used != self->state.uses.end() && --used->second == 0)
          self->state.uses.erase(used);
      }
    },
    [self](const layer_uses& x) -> std::uint64_t {
      auto used = self->state.uses.find(x.layer);
      return used == self->state.uses.end() ? 0 : used->second;
    },
  };
}

} // namespace dsec
