#include "actors/journal.hpp"

#include "actors/errors.hpp"
#include "backends/kill_point.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace dsec {

namespace {

using self_pointer = journal_inside::stateful_pointer<journal_data>;

void flush(self_pointer self) {
  auto& data = self->state;
  auto batches = std::exchange(data.batches, {});
  auto owed = std::exchange(data.owed, {});
  if (batches.empty())
    return;
  kill_point(crash_role::node);
  auto written = data.durable->commit(batches);
  kill_point(crash_role::node);
  if (!written) {
    data.broken =
      error{errc::unavailable, fmt::format("write to the journal: an earlier write failed: {}",
                                           written.error().message)};
    spdlog::critical("journal.failed {}; nothing is accepted any more", written.error().message);
  }
  for (auto& promise : owed) {
    if (written)
      promise.deliver(ack{});
    else
      promise.deliver(to_caf(written.error()));
  }
}

/// Reads behind everything that was written before.
template <class Look>
auto look(self_pointer self, Look at) -> decltype(at(*self->state.durable)) {
  flush(self);
  if (self->state.broken)
    return *self->state.broken;
  return at(*self->state.durable);
}

} // namespace

journal_inside::behavior_type journal(self_pointer self, store* durable) {
  self->state.durable = durable;
  self->set_exit_handler([self](caf::exit_msg& x) {
    flush(self);
    self->quit(std::move(x.reason));
  });
  return {
    [self](const write_batch_ptr& batch) -> caf::result<ack> {
      auto& data = self->state;
      if (data.broken)
        return to_caf(*data.broken);
      if (data.batches.empty())
        self->send(self, flush_journal{});
      data.batches.push_back(batch);
      data.owed.push_back(self->make_response_promise<ack>());
      return data.owed.back();
    },
    [self](const load_step& x) -> caf::result<step_record_ptr> {
      auto found = look(self, [&](store& from) { return from.step(x.sandbox, x.step); });
      if (!found)
        return to_caf(found.error());
      return step_record_ptr{std::make_shared<const step_record>(*std::move(found))};
    },
    [self](const load_sandbox& x) -> caf::result<sandbox_history_ptr> {
      auto found = look(self, [&](store& from) { return from.history(x.sandbox); });
      if (!found)
        return to_caf(found.error());
      return sandbox_history_ptr{std::make_shared<const sandbox_history>(*std::move(found))};
    },
    [self](const load_job& x) -> caf::result<job_record> {
      auto found = look(self, [&](store& from) { return from.job(x.job); });
      if (!found)
        return to_caf(found.error());
      return *std::move(found);
    },
    [self](const load_events& x) -> caf::result<event_page_ptr> {
      auto found = look(self, [&](store& from) { return from.events(x.job, x.cursor, x.count); });
      if (!found)
        return to_caf(found.error());
      return event_page_ptr{std::make_shared<const event_page>(*std::move(found))};
    },
    [self](flush_journal) { flush(self); },
  };
}

} // namespace dsec
