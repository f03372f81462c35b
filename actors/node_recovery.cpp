#include "actors/errors.hpp"
#include "actors/node_parts.hpp"

#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dsec::node_parts {

namespace {

constexpr std::chrono::seconds scan_retry{5};

void answer_if_recovered(self_pointer self) {
  auto& data = self->state;
  if (!data.scanned || !data.unsettled.empty())
    return;
  for (auto& promise : std::exchange(data.awaiting_recovery, {}))
    promise.deliver(ack{});
}

} // namespace

void recover(self_pointer self, node_seed seed) {
  auto& data = self->state;
  std::map<sandbox_id, std::vector<step_record>> steps;
  for (auto& x : seed.steps)
    steps[x.sandbox].push_back(std::move(x));
  std::ranges::sort(seed.sandboxes, {}, &sandbox_record::ended_ms);
  std::vector<layer_digest> in_use;
  std::vector<sandbox_id> live;
  for (auto& x : seed.sandboxes) {
    auto id = x.id;
    auto& entry = data.sandboxes[id];
    entry.record = std::make_shared<const sandbox_record>(std::move(x));
    const auto& record = *entry.record;
    for (const auto& step : steps[id])
      entry.steps += step.result.has_value();
    if (!record.idempotency_key.empty())
      data.keys[{record.job, record.idempotency_key}] = id;
    if (record.is == sandbox_state::terminated) {
      add_tombstone(self, id);
      continue;
    }
    ++data.live;
    data.memory_bytes += record.environment.limits.memory_bytes;
    data.jobs[record.job].live.insert(id);
    data.unsettled.insert(id);
    in_use.insert(in_use.end(), record.environment.layers.begin(), record.environment.layers.end());
    live.push_back(std::move(id));
  }
  for (const auto& layer : in_use)
    self->send(data.images, acquire_layers{{layer}});
  auto origin = seed.rebooted ? sandbox_origin::rebooted : sandbox_origin::recovered;
  for (const auto& id : live)
    spawn_sandbox(self, id, origin, std::move(steps[id]), true);
  bound_tombstones(self);
  scan(self);
}

void scan(self_pointer self) {
  self->state.services.kernel.inventory(
    [to = node_inside{self}](result<std::vector<live_sandbox>> x) {
      inventory_done done;
      if (!x)
        done.failure = x.error();
      else
        for (const auto& live : *x)
          done.live.emplace_back(live.id, live.ending);
      caf::anon_send(to, std::move(done));
    });
}

void on_scanned(self_pointer self, const inventory_done& x) {
  auto& data = self->state;
  if (x.failure) {
    data.scan_failure = x.failure;
    spdlog::error("node.scan_failed what runs on this machine is unknown: {}", x.failure->message);
    for (auto& promise : std::exchange(data.awaiting_recovery, {}))
      promise.deliver(to_caf(*x.failure));
    self->delayed_send(self, scan_retry, scan_again{});
    return;
  }
  data.scanned = true;
  data.scan_failure.reset();
  for (const auto& [id, ending] : x.live) {
    auto at = data.sandboxes.find(id);
    if (at != data.sandboxes.end() && at->second.actor)
      continue;
    spdlog::warn("node.leak_found sandbox {} lives without a record", id);
    data.services.kernel.stop(id, [to = node_inside{self}, id = id](result<void> stopped) {
      if (!stopped)
        caf::anon_send(to, leak_remains{id, stopped.error()});
    });
  }
  answer_if_recovered(self);
}

void on_settled(self_pointer self, const sandbox_id& id) {
  self->state.unsettled.erase(id);
  answer_if_recovered(self);
}

caf::result<ack> recovered(self_pointer self) {
  auto& data = self->state;
  if (data.scan_failure)
    return to_caf(*data.scan_failure);
  auto promise = self->make_response_promise<ack>();
  data.awaiting_recovery.push_back(promise);
  answer_if_recovered(self);
  return promise;
}

} // namespace dsec::node_parts
