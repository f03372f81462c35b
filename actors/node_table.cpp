#include "actors/errors.hpp"
#include "actors/node_parts.hpp"
#include "actors/supervision.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace dsec::node_parts {

namespace {

/// Unrecorded, then the process's epoch, then the actor's life: no exec of another life has such an
/// id.
exec_id first_exec(const node_data& data, std::uint32_t life) {
  return unrecorded_execs | (data.meta.epoch & 0x7f'ffff) << 40
         | static_cast<exec_id>(life & 0xff) << 32;
}

/// Takes an ended sandbox out of the table and, with `batch`, out of the store.
void forget(node_data& data, const sandbox_id& id, write_batch& batch) {
  auto at = data.sandboxes.find(id);
  const auto& record = *at->second.record;
  // Another one may have it by now, if this one never ran.
  auto named = data.keys.find({record.job, record.idempotency_key});
  if (named != data.keys.end() && named->second == id)
    data.keys.erase(named);
  batch.forgotten.push_back(id);
  data.sandboxes.erase(at);
}

} // namespace

void spawn_sandbox(self_pointer self, const sandbox_id& id, sandbox_origin origin,
                   std::vector<step_record> steps) {
  auto& data = self->state;
  auto& entry = data.sandboxes.at(id);
  sandbox_options options;
  options.backend_timeout = data.options.backend_timeout;
  options.wall_offset_ms = data.options.wall_offset_ms;
  sandbox_seed seed{*entry.record, origin, std::move(steps), first_exec(data, entry.lives++)};
  entry.down.reset();
  entry.actor =
    self->spawn<caf::monitored>(sandbox, std::move(seed),
                                sandbox_services{node_inside{self}, data.services.journal,
                                                 data.reclaimer, data.services.kernel},
                                options);
  data.by_actor[entry.actor.id()] = id;
}

void on_changed(self_pointer self, sandbox_record_ptr record) {
  auto& data = self->state;
  auto at = data.sandboxes.find(record->id);
  if (at == data.sandboxes.end())
    return;
  auto& entry = at->second;
  auto before = std::exchange(entry.record, record)->is;
  spdlog::debug("sandbox.changed sandbox {}: {} -> {}", record->id, before, record->is);
  if (record->is != sandbox_state::terminated || before == sandbox_state::terminated)
    return;
  entry.down.reset();
  if (entry.actor) {
    data.lingering[entry.actor.id()] = entry.actor.address();
    data.by_actor.erase(entry.actor.id());
    entry.actor = nullptr;
  }
  --data.live;
  data.memory_bytes -= record->environment.limits.memory_bytes;
  self->send(data.images, release_layers{record->environment.layers});
  data.jobs[record->job].live.erase(record->id);
  add_tombstone(self, record->id);
  bound_tombstones(self);
}

/// Starts a sandbox's actor anew. What is durable may be ahead of what the last one could still
/// tell.
void revive(self_pointer self, const sandbox_history& x) {
  const auto& id = x.record.id;
  auto& entry = self->state.sandboxes.at(id);
  auto record = std::make_shared<const sandbox_record>(x.record);
  entry.steps = static_cast<std::uint64_t>(
    std::ranges::count_if(x.steps, [](const step_record& y) { return y.result.has_value(); }));
  if (entry.record->is != record->is)
    on_changed(self, record);
  if (record->is == sandbox_state::terminated)
    return on_settled(self, id);
  entry.record = record;
  spawn_sandbox(self, id, sandbox_origin::restarted, x.steps);
}

void on_down(self_pointer self, const caf::down_msg& x) {
  auto& data = self->state;
  data.lingering.erase(x.source.id());
  auto at = data.by_actor.extract(x.source.id());
  if (at.empty())
    return;
  auto id = at.mapped();
  auto& entry = data.sandboxes.at(id);
  auto name = fmt::format("sandbox {}", id);
  entry.actor = nullptr;
  if (entry.lives >= lives_max) {
    entry.down = abandoned_error(name, x.reason);
    spdlog::critical("sandbox.abandoned {}", entry.down->message);
    return on_settled(self, id);
  }
  entry.down = restarting_error(name);
  spdlog::error("sandbox.restarted {}: its actor died of {}", name, to_string(x.reason));
  self->request(data.services.journal, caf::infinite, load_sandbox{id})
    .then([self](const sandbox_history_ptr& found) { revive(self, *found); },
          [self, id](caf::error& cause) {
            self->state.sandboxes.at(id).down = from_caf(cause, "the journal");
            on_settled(self, id);
          });
}

void add_tombstone(self_pointer self, const sandbox_id& id) {
  self->state.tombstones.push_back(id);
}

void bound_tombstones(self_pointer self) {
  auto& data = self->state;
  auto batch = std::make_shared<write_batch>();
  while (data.tombstones.size() > data.options.tombstones) {
    forget(data, data.tombstones.front(), *batch);
    data.tombstones.pop_front();
  }
  if (batch->forgotten.empty())
    return;
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then([](ack) {},
          [](caf::error& cause) {
            spdlog::error("node.tombstones_kept the journal refused: {}", to_string(cause));
          });
}

caf::result<ack> forget_ended(self_pointer self, const job_id& job) {
  auto& data = self->state;
  auto batch = std::make_shared<write_batch>();
  std::erase_if(data.tombstones, [&](const sandbox_id& id) {
    if (data.sandboxes.at(id).record->job != job)
      return false;
    forget(data, id, *batch);
    return true;
  });
  batch->forgotten_jobs.push_back(job);
  auto answer = self->state.owed.owe<ack>(self);
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then([answer](ack) { answer.deliver(ack{}); },
          [answer](caf::error& cause) { answer.deliver(std::move(cause)); });
  return answer;
}

sandbox_info info_of(const node_entry& x) {
  const auto& record = *x.record;
  return {record.id,     record.job, record.index,      record.is,       record.cause,
          record.detail, x.steps,    record.created_ms, record.ended_ms, record.clocks};
}

inventory_ptr inventory_of(const node_data& data, const inventory_query& x) {
  auto all = std::make_shared<inventory>();
  for (const auto& [id, entry] : data.sandboxes) {
    if (!x.job.empty() && entry.record->job != x.job)
      continue;
    if (entry.record->is != sandbox_state::terminated || x.with_ended)
      all->sandboxes.push_back(info_of(entry));
  }
  return all;
}

keys_reply keys_of(const node_data& data, const job_id& job) {
  keys_reply reply{data.meta.node, {}};
  for (auto at = data.keys.lower_bound({job, {}}); at != data.keys.end() && at->first.first == job;
       ++at)
    reply.keys.push_back(at->first.second);
  return reply;
}

} // namespace dsec::node_parts
