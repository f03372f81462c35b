#include "actors/node_parts.hpp"

#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace dsec::node_parts {

namespace {

/// A sandbox whose actor dies this often is left alone.
constexpr std::uint32_t lives_max = 8;

/// 2^63, then the process's epoch, then the actor's life: no exec of another life has such an id.
exec_id first_exec(const node_data& data, std::uint32_t life) {
  return 1ull << 63 | (data.meta.epoch & 0x7f'ffff) << 40 | static_cast<exec_id>(life & 0xff) << 32;
}

/// Takes an ended sandbox out of the table and, with `batch`, out of the store.
void forget(node_data& data, const sandbox_id& id, write_batch& batch) {
  auto at = data.sandboxes.find(id);
  const auto& record = *at->second.record;
  if (!record.idempotency_key.empty())
    data.keys.erase({record.job, record.idempotency_key});
  batch.forgotten.push_back(id);
  data.sandboxes.erase(at);
}

} // namespace

void spawn_sandbox(self_pointer self, const sandbox_id& id, sandbox_origin origin,
                   std::vector<step_record> steps, bool steps_known) {
  auto& data = self->state;
  auto& entry = data.sandboxes.at(id);
  sandbox_options options;
  options.backend_timeout = data.options.backend_timeout;
  options.wall_offset_ms = data.options.wall_offset_ms;
  sandbox_seed seed{*entry.record, origin, std::move(steps), steps_known,
                    first_exec(data, entry.lives++)};
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
  ++data.changes;
  if (data.options.on_change) {
    auto now = self->clock().now().time_since_epoch();
    data.options.on_change({data.changes,
                            data.options.wall_offset_ms
                              + std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
                            record->id, record->job, record->is, record->cause, record->detail});
  }
  if (record->is != sandbox_state::terminated || !entry.actor)
    return;
  data.lingering[entry.actor.id()] = entry.actor.address();
  data.by_actor.erase(entry.actor.id());
  entry.actor = nullptr;
  --data.live;
  data.memory_bytes -= record->environment.limits.memory_bytes;
  self->send(data.images, release_layers{record->environment.layers});
  data.jobs[record->job].live.erase(record->id);
  add_tombstone(self, record->id);
  bound_tombstones(self);
}

void on_down(self_pointer self, const caf::down_msg& x) {
  auto& data = self->state;
  data.lingering.erase(x.source.id());
  auto at = data.by_actor.extract(x.source.id());
  if (at.empty())
    return;
  auto id = at.mapped();
  auto& entry = data.sandboxes.at(id);
  if (entry.lives >= lives_max) {
    spdlog::critical("sandbox.abandoned sandbox {}: its actor died {} times, now of {}", id,
                     entry.lives, to_string(x.reason));
    return;
  }
  spdlog::error("sandbox.restarted sandbox {}: its actor died of {}", id, to_string(x.reason));
  spawn_sandbox(self, id, sandbox_origin::recovered, {}, false);
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
  auto promise = self->make_response_promise<ack>();
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then([promise](ack) mutable { promise.deliver(ack{}); },
          [promise](caf::error& cause) mutable { promise.deliver(std::move(cause)); });
  return promise;
}

sandbox_info info_of(const node_entry& x) {
  const auto& record = *x.record;
  return {record.id,     record.job, record.index,      record.is,      record.cause,
          record.detail, x.steps,    record.created_ms, record.ended_ms};
}

inventory_ptr inventory_of(const node_data& data, const inventory_query& x) {
  auto all = std::make_shared<inventory>();
  for (const auto& [id, entry] : data.sandboxes) {
    if (!x.job.empty() && entry.record->job != x.job)
      continue;
    if (entry.actor || x.with_ended)
      all->sandboxes.push_back(info_of(entry));
  }
  return all;
}

} // namespace dsec::node_parts
