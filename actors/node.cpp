#include "actors/node.hpp"

#include "actors/errors.hpp"
#include "actors/images.hpp"
#include "actors/node_parts.hpp"
#include "actors/reclaimer.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace dsec {

namespace {

using namespace node_parts;

caf::result<find_reply> find(const node_data& data, const sandbox_id& id) {
  auto at = data.sandboxes.find(id);
  if (at == data.sandboxes.end())
    return to_caf(
      {errc::not_found, fmt::format("sandbox {}: not known on node {}", id, data.meta.node)});
  if (at->second.down)
    return to_caf(*at->second.down);
  return find_reply{at->second.actor, info_of(at->second)};
}

void end_all(self_pointer self) {
  auto& data = self->state;
  for (const auto& [id, entry] : data.sandboxes)
    if (entry.actor)
      caf::anon_send_exit(entry.actor, caf::exit_reason::user_shutdown);
  for (const auto& [id, actor] : data.lingering)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(data.reclaimer, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(data.images, caf::exit_reason::user_shutdown);
  data.by_actor.clear();
}

} // namespace

node_inside::behavior_type
node(self_pointer self, node_seed seed, node_services services, plane_options options) {
  auto& data = self->state;
  data.options = std::move(options);
  data.services = std::move(services);
  data.meta = seed.meta;
  data.owed.debtor = fmt::format("node {}", data.meta.node);
  data.next_sequence = seed.meta.next_sequence;
  data.reclaimer = self->spawn(reclaimer, data.options.reclaims_at_once);
  data.images = self->spawn(images, std::vector<layer_digest>{});
  self->set_down_handler([self](caf::down_msg& x) { on_down(self, x); });
  self->set_exit_handler([self](caf::exit_msg& x) {
    end_all(self);
    self->quit(std::move(x.reason));
  });
  recover(self, std::move(seed));
  return {
    [self](const create_request& x) { return create(self, x); },
    [self](const preempt_request& x) { return preempt(self, x); },
    [self](const resume_job& x) { return resume_all(self, x.job); },
    [self](const close_job& x) { return stop_all(self, x.job); },
    [self](const forget_job& x) { return forget_ended(self, x.job); },
    [self](const keys_request& x) { return keys_of(self->state, x.job); },
    [self](const renew_job& x) { renew(self, x); },
    [self](const inventory_query& x) { return inventory_of(self->state, x); },
    [self](const find_sandbox& x) { return find(self->state, x.id); },
    [self](const load_request&) {
      const auto& now = self->state;
      return node_load{now.meta.node, now.live, now.options.capacity, now.memory_bytes,
                       now.options.memory_bytes};
    },
    [self](const sandbox_changed& x) { on_changed(self, x.record); },
    [self](const step_recorded& x) {
      auto at = self->state.sandboxes.find(x.id);
      if (at != self->state.sandboxes.end())
        ++at->second.steps;
    },
    [self](const sandbox_settled& x) { on_settled(self, x.id); },
    [self](const inventory_done& x) { on_scanned(self, x); },
    [self](const leak_remains& x) {
      spdlog::error("node.leak_remains sandbox {}: {}", x.id, x.failure.message);
      scan_later(self);
    },
    [self](const scan_again& x) {
      if (x.scan == self->state.scan)
        scan(self);
    },
    [self](const ended_notice& x) {
      auto at = self->state.sandboxes.find(x.id);
      if (at != self->state.sandboxes.end() && at->second.actor)
        self->send(at->second.actor, x);
    },
    [self](const await_recovered&) { return recovered(self); },
  };
}

} // namespace dsec
