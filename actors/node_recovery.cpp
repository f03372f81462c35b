#include "actors/errors.hpp"
#include "actors/node_parts.hpp"
#include "state/idempotency.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dsec::node_parts {

namespace {

constexpr std::chrono::seconds scan_retry{5};

void scan_after(self_pointer self, std::chrono::milliseconds delay) {
  self->delayed_send(self, delay, scan_again{self->state.scan});
}

void answer_if_recovered(self_pointer self) {
  auto& data = self->state;
  if (!data.scanned || !data.unsettled.empty())
    return;
  for (auto& answer : std::exchange(data.awaiting_recovery, {}))
    answer.deliver(ack{});
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
    if (!record.idempotency_key.empty() && !frees_key(record))
      data.keys[{record.job, record.idempotency_key}] = id;
    if (record.is == sandbox_state::terminated) {
      if (auto counted = seed.steps_of_ended.find(id); counted != seed.steps_of_ended.end())
        entry.steps = counted->second;
      add_tombstone(self, id);
      continue;
    }
    for (const auto& step : steps[id])
      entry.steps += step.result.has_value();
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
    spawn_sandbox(self, id, origin, std::move(steps[id]));
  bound_tombstones(self);
  scan(self);
}

void scan(self_pointer self) {
  auto& data = self->state;
  auto number = ++data.scan;
  data.scanning = true;
  data.services.kernel.inventory(
    [to = node_inside{self}, number](result<std::vector<live_sandbox>> x) {
      inventory_done done{number, {}, {}};
      if (!x)
        done.failure = x.error();
      else
        for (const auto& live : *x)
          done.live.emplace_back(live.id, live.ending);
      caf::anon_send(to, std::move(done));
    });
  auto limit = data.options.backend_timeout;
  error silent{errc::unavailable,
               fmt::format("list what lives on this machine: the backend gave no inventory within "
                           "{} ms",
                           limit.count())};
  self->delayed_send(self, limit, inventory_done{number, {}, std::move(silent)});
}

void scan_later(self_pointer self) {
  scan_after(self, scan_retry);
}

void on_scanned(self_pointer self, const inventory_done& x) {
  auto& data = self->state;
  if (x.scan != data.scan || !std::exchange(data.scanning, false))
    return;
  if (x.failure) {
    data.scan_failure = x.failure;
    spdlog::error("node.scan_failed what runs on this machine is unknown: {}", x.failure->message);
    for (auto& answer : std::exchange(data.awaiting_recovery, {}))
      answer.deliver(to_caf(*x.failure));
    return scan_later(self);
  }
  data.scanned = true;
  data.scan_failure.reset();
  bool leaks = false;
  for (const auto& [id, ending] : x.live) {
    auto at = data.sandboxes.find(id);
    if (at != data.sandboxes.end() && at->second.record->is != sandbox_state::terminated)
      continue;
    leaks = true;
    spdlog::warn("node.leak_found sandbox {} lives without a record", id);
    data.services.kernel.stop(id, [to = node_inside{self}, id = id](result<void> stopped) {
      if (!stopped)
        caf::anon_send(to, leak_remains{id, stopped.error()});
    });
  }
  // A tear-down that is never answered is seen by what is still there.
  if (leaks)
    scan_after(self, data.options.backend_timeout);
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
  auto answer = self->state.owed.owe<ack>(self);
  data.awaiting_recovery.push_back(answer);
  answer_if_recovered(self);
  return answer;
}

} // namespace dsec::node_parts
