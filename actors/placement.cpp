#include "actors/placement.hpp"

#include "actors/errors.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dsec {

namespace {

using self_pointer = placement_inside::stateful_pointer<placement_data>;
using promise = caf::typed_response_promise<placement_reply>;

constexpr std::chrono::seconds poll_period{1};

cluster_view view_of(self_pointer self) {
  cluster_view view;
  auto now = self->clock().now();
  for (const auto& [id, x] : self->state.nodes)
    if (x.heard)
      view.nodes.push_back(
        {id, x.said.live, x.said.capacity, x.said.memory_committed_bytes,
         x.said.memory_capacity_bytes,
         std::chrono::duration_cast<std::chrono::milliseconds>(now - x.said_at)});
  return view;
}

/// Ranks nodes with room for at least one; the asker spreads what it has evenly, and a node that
/// refuses has the last word.
void answer(self_pointer self, const place_request& x, promise to) {
  auto& data = self->state;
  auto ranked = place(view_of(self), data.overlay, {1, x.memory_bytes}, data.options, data.chance);
  if (!ranked)
    return static_cast<void>(to.deliver(to_caf(ranked.error())));
  placement_reply reply;
  for (const auto& id : *ranked) {
    reply.ranked.push_back(data.nodes.at(id).handle);
    auto share = (x.sandboxes + ranked->size() - 1) / ranked->size();
    data.overlay[id].sandboxes += share;
    data.overlay[id].memory_bytes += share * x.memory_bytes;
  }
  to.deliver(std::move(reply));
}

void on_load(self_pointer self, const node_load& said, const node_id& id) {
  auto& data = self->state;
  auto& node = data.nodes.at(id);
  node.said = said;
  node.said_at = self->clock().now();
  node.asked = false;
  node.heard = true;
  data.overlay.erase(id);
  for (auto& [request, to] : std::exchange(data.waiting, {}))
    answer(self, request, std::move(to));
}

void ask_load(self_pointer self, placement_node& x) {
  if (std::exchange(x.asked, true))
    return;
  self->request(x.handle.node, caf::infinite, load_request{})
    .then([self, id = x.handle.id](const node_load& said) { on_load(self, said, id); },
          [self, id = x.handle.id](caf::error&) { self->state.nodes.at(id).asked = false; });
}

void poll(self_pointer self) {
  for (auto& [id, x] : self->state.nodes)
    ask_load(self, x);
}

} // namespace

placement_inside::behavior_type placement(self_pointer self, std::vector<join_node> nodes) {
  for (auto& x : nodes)
    self->state.nodes[x.id].handle = x;
  self->send(self, gateway_tick{});
  return {
    [self](const place_request& x) -> caf::result<placement_reply> {
      auto to = self->make_response_promise<placement_reply>();
      const auto& known = self->state.nodes;
      if (std::ranges::any_of(known, [](const auto& node) { return node.second.heard; }))
        answer(self, x, to);
      else
        self->state.waiting.emplace_back(x, to);
      return to;
    },
    [self](const gateway_tick&) {
      poll(self);
      self->delayed_send(self, poll_period, gateway_tick{});
    },
    [self](const nodes_changed& x) {
      for (const auto& node : x.nodes) {
        auto& known = self->state.nodes[node.id];
        known.asked = known.asked && known.handle.node == node.node;
        known.handle = node;
      }
      poll(self);
    },
  };
}

} // namespace dsec
