#include "actors/node_link.hpp"

#include "actors/errors.hpp"

#include <algorithm>
#include <utility>

namespace dsec {

namespace {

using self_pointer = node_link_actor::stateful_pointer<node_link_data>;

void carry(self_pointer self, caf::actor_clock::time_point& wire_free, std::function<void()> act) {
  auto& data = self->state;
  auto now = self->clock().now();
  auto spread = static_cast<std::uint64_t>((data.latency.most - data.latency.least).count());
  auto latency = data.latency.least + std::chrono::microseconds{data.random.below(spread + 1)};
  wire_free = std::max(wire_free, now + latency);
  self->delayed_send(self, wire_free - now,
                     link_delivery{++data.deliveries,
                                   std::make_shared<const std::function<void()>>(std::move(act))});
}

template <class Reply, class Message>
caf::result<Reply> forward(self_pointer self, Message message) {
  auto& data = self->state;
  auto promise = self->make_response_promise<Reply>();
  auto number = data.next_request++;
  data.owed[number] = [promise]() mutable {
    promise.deliver(to_caf({errc::unavailable, "the node has died"}));
  };
  auto back = [self, promise, number](auto answer) mutable {
    carry(self, self->state.down_free, [self, promise, number, answer]() mutable {
      if (self->state.owed.erase(number) > 0)
        promise.deliver(std::move(answer));
    });
  };
  carry(self, data.up_free, [self, message = std::move(message), back] {
    self->request(self->state.node, caf::infinite, message)
      .then([back](const Reply& x) mutable { back(x); },
            [back](caf::error& cause) mutable { back(std::move(cause)); });
  });
  return promise;
}

} // namespace

node_link_actor::behavior_type
node_link(self_pointer self, node_actor node, link_latency latency, std::uint64_t seed) {
  auto& data = self->state;
  data.node = std::move(node);
  data.latency = latency;
  data.random = sim_random{seed};
  data.up_free = data.down_free = self->clock().now();
  self->monitor(data.node);
  self->set_down_handler([self](caf::down_msg&) {
    for (auto& [number, refuse] : std::exchange(self->state.owed, {}))
      refuse();
  });
  return {
    [self](const create_request& x) { return forward<create_reply_ptr>(self, x); },
    [self](const preempt_request& x) { return forward<preempt_report>(self, x); },
    [self](const resume_job& x) { return forward<ack>(self, x); },
    [self](const close_job& x) { return forward<ack>(self, x); },
    [self](const forget_job& x) { return forward<ack>(self, x); },
    [self](const keys_request& x) { return forward<keys_reply>(self, x); },
    [self](const renew_job& x) {
      carry(self, self->state.up_free, [self, x] { self->send(self->state.node, x); });
    },
    [self](const inventory_query& x) { return forward<inventory_ptr>(self, x); },
    [self](const find_sandbox& x) { return forward<find_reply>(self, x); },
    [self](const load_request& x) { return forward<node_load>(self, x); },
    [](const link_delivery& x) { (*x.act)(); },
  };
}

} // namespace dsec
