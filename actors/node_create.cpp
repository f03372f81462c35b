#include "actors/errors.hpp"
#include "actors/node_parts.hpp"
#include "placement/admission.hpp"
#include "state/idempotency.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec::node_parts {

namespace {

/// Ids are reserved in blocks, so that most creations write no meta record.
constexpr std::uint64_t sequence_block = 1024;

std::int64_t wall_ms(self_pointer self) {
  auto now = self->clock().now().time_since_epoch();
  return self->state.options.wall_offset_ms
         + std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

result<void> admit_one(node_data& data, const create_item& item) {
  if (auto ok = validate(item.environment); !ok)
    return ok;
  if (auto ok = validate(item.clocks); !ok)
    return ok;
  auto scope = fmt::format("node {}", data.meta.node);
  if (auto ok = admit({"sandboxes", scope, data.live, data.options.capacity}, 1); !ok)
    return ok;
  auto memory = item.environment.limits.memory_bytes;
  if (auto ok =
        admit({"memory_bytes", scope, data.memory_bytes, data.options.memory_bytes}, memory);
      !ok)
    return ok;
  ++data.live;
  data.memory_bytes += memory;
  return {};
}

sandbox_id next_id(node_data& data, write_batch& batch) {
  if (data.next_sequence == data.meta.next_sequence) {
    data.meta.next_sequence += sequence_block;
    batch.meta.push_back(data.meta);
  }
  return make_sandbox_id(data.meta.node, data.next_sequence++);
}

void run_deferred(self_pointer self, const job_id& job) {
  auto& data = self->state.jobs[job];
  while (data.creating == 0 && !data.deferred.empty()) {
    auto verb = std::move(data.deferred.front());
    data.deferred.pop_front();
    verb();
  }
}

void begin_all(self_pointer self, const write_batch& batch) {
  auto& data = self->state;
  for (const auto& x : batch.sandboxes) {
    data.sandboxes[x.id].record = std::make_shared<const sandbox_record>(x);
    data.jobs[x.job].live.insert(x.id);
    self->send(data.images, acquire_layers{x.environment.layers});
    spawn_sandbox(self, x.id, sandbox_origin::created, {});
    on_changed(self, data.sandboxes[x.id].record);
  }
}

/// `x.environment` is another one than that of the sandbox that its key names. Unknown, and taken
/// as the same, while that one's record is being written on behalf of another request.
bool diverges(const node_data& data, const write_batch& batch, const sandbox_id& named,
              const create_item& x) {
  auto known = data.sandboxes.find(named);
  if (known != data.sandboxes.end())
    return known->second.record->environment != x.environment;
  auto made = std::ranges::find(batch.sandboxes, named, &sandbox_record::id);
  return made != batch.sandboxes.end() && made->environment != x.environment;
}

/// Whether that sandbox failed to start: nothing was made under its key, so the key is free.
bool never_ran(const node_data& data, const sandbox_id& named) {
  auto known = data.sandboxes.find(named);
  return known != data.sandboxes.end() && frees_key(*known->second.record);
}

/// What was admitted will not be.
void take_back(node_data& data, const write_batch& batch) {
  for (const auto& x : batch.sandboxes) {
    --data.live;
    data.memory_bytes -= x.environment.limits.memory_bytes;
    if (!x.idempotency_key.empty())
      data.keys.erase({x.job, x.idempotency_key});
  }
}

} // namespace

caf::result<create_reply_ptr> create(self_pointer self, const create_request& x) {
  auto& data = self->state;
  if (x.indices.size() != x.items.size())
    return to_caf({errc::invalid_argument, fmt::format("create: {} indices for {} items",
                                                       x.indices.size(), x.items.size())});
  auto reply = std::make_shared<create_reply>();
  auto batch = std::make_shared<write_batch>();
  bool repeated = false;
  for (std::size_t i = 0; i < x.items.size(); ++i) {
    const auto& item = x.items[i];
    auto known = item.idempotency_key.empty() ? data.keys.end()
                                              : data.keys.find({x.job, item.idempotency_key});
    if (known != data.keys.end() && !never_ran(data, known->second)) {
      if (diverges(data, *batch, known->second, item)) {
        reply->sandboxes.push_back(
          error{errc::diverged,
                fmt::format("create in job {}: key {} names sandbox {}, which has another "
                            "environment",
                            x.job, printable(item.idempotency_key), known->second)});
        continue;
      }
      repeated = true;
      reply->sandboxes.push_back(known->second);
      continue;
    }
    if (auto admitted = admit_one(data, item); !admitted) {
      reply->sandboxes.push_back(admitted.error());
      continue;
    }
    sandbox_record record;
    record.id = next_id(data, *batch);
    record.job = x.job;
    record.index = x.indices[i];
    record.idempotency_key = item.idempotency_key;
    record.environment = item.environment;
    record.lease = x.lease;
    record.clocks = item.clocks;
    record.created_ms = wall_ms(self);
    if (!record.idempotency_key.empty())
      data.keys[{x.job, record.idempotency_key}] = record.id;
    reply->sandboxes.push_back(record.id);
    batch->events.push_back(about(record, event_kind::created, record.created_ms));
    batch->sandboxes.push_back(std::move(record));
  }
  auto& job = data.jobs[x.job];
  // A repeated key may name a sandbox whose record is still being written: the journal keeps order.
  if (batch->sandboxes.empty() && !(repeated && job.creating > 0))
    return create_reply_ptr{reply};
  ++job.creating;
  auto answer = self->state.owed.owe<create_reply_ptr>(self);
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then(
      [self, answer, batch, reply, job_of = x.job](ack) mutable {
        begin_all(self, *batch);
        answer.deliver(create_reply_ptr{reply});
        --self->state.jobs[job_of].creating;
        run_deferred(self, job_of);
      },
      [self, answer, batch, job_of = x.job](caf::error& cause) mutable {
        take_back(self->state, *batch);
        answer.deliver(cause);
        --self->state.jobs[job_of].creating;
        run_deferred(self, job_of);
      });
  return answer;
}

} // namespace dsec::node_parts
