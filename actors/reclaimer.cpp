#include "actors/reclaimer.hpp"

#include <algorithm>
#include <utility>

namespace dsec {

namespace {

using self_pointer = reclaimer_actor::stateful_pointer<reclaimer_data>;

void grant(self_pointer self) {
  auto& data = self->state;
  while (data.holders.size() < data.at_once && !data.waiting.empty()) {
    auto [who, promise] = std::move(data.waiting.front());
    data.waiting.pop_front();
    data.holders.insert(who->id());
    self->monitor(who);
    promise.deliver(ack{});
  }
}

void give_back(self_pointer self, caf::actor_id who) {
  self->state.holders.erase(who);
  grant(self);
}

} // namespace

reclaimer_actor::behavior_type reclaimer(self_pointer self, std::uint32_t at_once) {
  self->state.at_once = std::max<std::uint32_t>(at_once, 1);
  self->set_down_handler([self](caf::down_msg& x) { give_back(self, x.source.id()); });
  return {
    [self](reclaim_permit) -> caf::result<ack> {
      caf::strong_actor_ptr asker = self->current_sender(); // The promise takes it away.
      auto promise = self->make_response_promise<ack>();
      self->state.waiting.emplace_back(std::move(asker), promise);
      grant(self);
      return promise;
    },
    [self](return_permit) {
      self->demonitor(self->current_sender()->address());
      give_back(self, self->current_sender()->id());
    },
  };
}

} // namespace dsec
