#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using E = sandbox_event;
using permit = sandbox_data::permit;

bool over(S x) {
  return x == S::stopping || x == S::terminated || x == S::failed;
}

std::int64_t wall_ms(self_pointer self) {
  auto now = self->clock().now().time_since_epoch();
  return self->state.options.wall_offset_ms
         + std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// The one place that changes `record.is`.
void apply(self_pointer self, E event) {
  auto& data = self->state;
  auto& record = data.record;
  auto target = next(record.is, event);
  assert(target);
  ++data.epoch;
  data.effect = false;
  auto from = std::exchange(record.is, *target);
  if (event == E::fault) {
    record.cause = data.fault->cause;
    record.detail = data.fault->detail;
    record.wanted = S::terminated;
    spdlog::warn("sandbox.fault sandbox {} failed while {}: {} ({})", record.id, from,
                 record.detail, record.cause);
  }
  if (event == E::stop && record.cause == end_cause::none)
    record.cause = end_cause::stopped;
  if (record.is == S::terminated)
    record.ended_ms = wall_ms(self);
  // A start is covered by the durable intent; the tear-down of a failed one by the failure.
  bool covered = event == E::start || from == S::failed || from == record.is;
  if (!covered)
    data.state_dirty = true;
  else if (record.is == S::starting)
    data.shown = S::starting;
}

/// What the table and the wish ask for now, if anything.
std::optional<E> next_event(const sandbox_data& data) {
  auto is = data.record.is;
  auto wanted = data.record.wanted;
  if (is == S::terminated || is == S::stopping)
    return std::nullopt;
  if (data.fault && next(is, E::fault))
    return E::fault;
  if (wanted == S::terminated || is == S::failed)
    return E::stop;
  if (data.probing)
    return std::nullopt;
  switch (is) {
  case S::pending:
    return E::start;
  case S::running:
    return wanted == S::running ? std::nullopt : std::optional{E::pause};
  case S::paused:
    if (wanted == S::running)
      return E::resume;
    if (wanted == S::reclaimed && data.reclaim_permit == permit::held)
      return E::reclaim;
    return std::nullopt;
  case S::reclaimed:
    return wanted == S::running ? std::optional{E::resume} : std::nullopt;
  default:
    return std::nullopt;
  }
}

bool has_effect(const sandbox_data& data) {
  switch (data.record.is) {
  case S::starting:
  case S::pausing:
  case S::reclaiming:
  case S::resuming:
    return !data.probing;
  case S::stopping:
    // A start under way might build what the tear-down has just removed.
    return data.start == 0 && !data.retrying;
  default:
    return false;
  }
}

void ask_permit(self_pointer self) {
  auto& data = self->state;
  data.reclaim_permit = permit::asked;
  self->request(data.services.reclaimer, caf::infinite, reclaim_permit{})
    .then(
      [self](ack) {
        self->state.reclaim_permit = permit::held;
        converge(self);
      },
      [self](caf::error& cause) {
        self->state.reclaim_permit = permit::none;
        self->state.record.wanted = S::paused;
        refuse(self, sandbox_waiter::goal::reclaimed, from_caf(cause, "the reclaimer"));
      });
}

/// Before a reclaim its permit is asked for, after it (or when it is no longer wanted) returned.
void balance_permit(self_pointer self) {
  auto& data = self->state;
  bool needed = data.record.is == S::reclaiming
                || (data.record.is == S::paused && data.record.wanted == S::reclaimed);
  if (needed && data.reclaim_permit == permit::none)
    ask_permit(self);
  if (!needed && data.reclaim_permit == permit::held) {
    data.reclaim_permit = permit::none;
    self->send(data.services.reclaimer, return_permit{});
  }
}

void persist(self_pointer self) {
  auto& data = self->state;
  data.writing = true;
  data.state_dirty = data.intent_dirty = false;
  auto batch = std::make_shared<write_batch>();
  batch->sandboxes.push_back(data.record);
  sandbox_record_ptr written{batch, &batch->sandboxes.front()};
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then(
      [self, written](ack) {
        auto& now = self->state;
        now.writing = false;
        now.shown = written->is;
        self->send(now.services.node, sandbox_changed{written});
        converge(self);
      },
      [self](caf::error& cause) { journal_failed(self, from_caf(cause, "the journal")); });
}

/// Somebody waits for it to run.
bool needed(const sandbox_data& data) {
  return !data.execs.empty() || !data.files.empty()
         || std::ranges::any_of(data.waiters, [](const sandbox_waiter& x) {
              return x.heading == sandbox_waiter::goal::resumed;
            });
}

void settled(self_pointer self) {
  if (std::exchange(self->state.settling, false))
    self->send(self->state.services.node, sandbox_settled{self->state.record.id});
}

void learn_fate(self_pointer self, error why) {
  auto& data = self->state;
  data.services.kernel.ended_by_itself(
    data.record.id,
    [to = sandbox_inside{self}, probe = data.probe, why = std::move(why)](result<sandbox_end> x) {
      auto end = x ? *std::move(x)
                   : sandbox_end{end_cause::infrastructure,
                                 fmt::format("its supervisor is gone: {}", why.message)};
      caf::anon_send(to, fate_done{probe, std::move(end)});
    });
}

} // namespace

void converge(self_pointer self) {
  auto& data = self->state;
  if (data.broken)
    return;
  while (!data.writing) {
    balance_permit(self);
    if (data.state_dirty)
      return persist(self);
    if (auto event = next_event(data)) {
      apply(self, *event);
      continue;
    }
    if (data.intent_dirty)
      return persist(self);
    break;
  }
  if (data.writing)
    return;
  if (!data.effect && has_effect(data))
    begin_effect(self);
  answer_waiters(self);
  if (over(data.record.is)) {
    finish_execs(self);
    finish_files(self);
  } else if (data.record.is == S::running && !data.probing) {
    start_execs(self);
    start_files(self);
  }
}

void probe(self_pointer self) {
  auto& data = self->state;
  data.probing = true;
  auto probe = ++data.probe;
  data.services.kernel.adopt(data.record.id,
                             [to = sandbox_inside{self}, probe](result<found_phase> x) {
                               probe_done done{probe, {}, {}};
                               if (!x) {
                                 done.failure = x.error();
                               } else {
                                 switch (*x) {
                                 case found_phase::running:
                                   done.found = E::found_running;
                                   break;
                                 case found_phase::paused:
                                   done.found = E::found_paused;
                                   break;
                                 case found_phase::reclaimed:
                                   done.found = E::found_reclaimed;
                                   break;
                                 }
                               }
                               caf::anon_send(to, std::move(done));
                             });
  self->delayed_send(self, data.options.backend_timeout,
                     probe_done{probe, {}, error{errc::unavailable, "adopt: no answer in time"}});
}

void on_probe_done(self_pointer self, const probe_done& x) {
  auto& data = self->state;
  if (!data.probing || x.probe != data.probe)
    return;
  if (!x.found) {
    ++data.probe; // The same probe may not report twice.
    return learn_fate(self, x.failure);
  }
  data.probing = false;
  if (!over(data.record.is)) {
    auto target = next(data.record.is, *x.found);
    if (target) {
      apply(self, *x.found);
      // Frozen by its expired lease: it stays so until a request needs it.
      if (*target != S::running && data.record.wanted == S::running && !needed(data))
        data.record.wanted = *target;
    }
    rejoin_execs(self);
  }
  settled(self);
  converge(self);
}

void on_fate_done(self_pointer self, const fate_done& x) {
  auto& data = self->state;
  if (!data.probing || x.probe != data.probe)
    return;
  data.probing = false;
  fail(self, x.end);
}

void fail(self_pointer self, sandbox_end end) {
  auto& data = self->state;
  data.probing = false;
  if (!data.fault && !over(data.record.is))
    data.fault = std::move(end);
  settled(self);
  converge(self);
}

void journal_failed(self_pointer self, const error& cause) {
  auto& data = self->state;
  data.broken = cause;
  settled(self);
  for (auto& x : std::exchange(data.waiters, {}))
    x.promise.deliver(to_caf(cause));
  for (auto& [id, x] : std::exchange(data.execs, {}))
    for (auto& answer : x.answers)
      answer.deliver(to_caf(cause));
  for (auto& [ticket, x] : std::exchange(data.files, {}))
    x.answer.deliver(to_caf(cause));
}

std::optional<error> ended(const sandbox_data& data) {
  const auto& record = data.record;
  if (!over(record.is) && record.wanted != S::terminated && !data.fault)
    return std::nullopt;
  if (data.failure && record.cause == end_cause::start_failed)
    return error{data.failure->code,
                 fmt::format("start sandbox {}: {}", record.id, data.failure->message)};
  auto cause = data.fault ? data.fault->cause : record.cause;
  const auto& detail = data.fault ? data.fault->detail : record.detail;
  return error{errc::invalid_state,
               fmt::format("sandbox {} is {} ({}{}{})", record.id,
                           over(record.is) ? record.is : S::stopping,
                           cause == end_cause::none ? end_cause::stopped : cause,
                           detail.empty() ? "" : ": ", detail)};
}

std::optional<error> demand_running(self_pointer self) {
  auto& data = self->state;
  auto& record = data.record;
  if (data.broken)
    return data.broken;
  if (auto why = ended(data))
    return why;
  if (record.held)
    return error{errc::preempted, fmt::format("sandbox {}: job {} is preempted until it is resumed",
                                              record.id, record.job)};
  if (record.wanted != S::running) {
    record.wanted = S::running;
    overtake(self, {sandbox_waiter::goal::paused, sandbox_waiter::goal::reclaimed}, "request");
  }
  return std::nullopt;
}

sandbox_info info_of(const sandbox_data& data) {
  const auto& x = data.record;
  bool told = over(data.shown);
  return {x.id,
          x.job,
          x.index,
          data.shown,
          told ? x.cause : end_cause::none,
          told ? x.detail : std::string{},
          data.steps_recorded,
          x.created_ms,
          data.shown == S::terminated ? x.ended_ms : 0};
}

void on_verb_done(self_pointer self, const verb_done& x) {
  auto& data = self->state;
  if (x.epoch == data.start)
    data.start = 0;
  if (x.epoch != data.epoch || !data.effect)
    return converge(self); // Overtaken; but a tear-down may have waited for it.
  data.effect = false;
  auto fault = [&](end_cause cause, std::string_view verb) {
    data.failure = x.failure;
    fail(self, {cause, fmt::format("{}: {}", verb, x.failure->message)});
  };
  switch (data.record.is) {
  case S::starting:
    if (x.failure)
      return fault(end_cause::start_failed, "start");
    apply(self, E::started);
    break;
  case S::pausing:
    if (x.failure)
      return fault(end_cause::infrastructure, "pause");
    data.reclaimed = {};
    apply(self, E::paused);
    break;
  case S::reclaiming:
    if (x.failure) {
      apply(self, E::paused);
      if (data.record.wanted == S::reclaimed)
        data.record.wanted = S::paused;
      refuse(self, sandbox_waiter::goal::reclaimed, *x.failure);
    } else {
      data.reclaimed = x.report;
      apply(self, E::reclaimed);
    }
    break;
  case S::resuming:
    if (x.failure)
      return fault(end_cause::infrastructure, "resume");
    apply(self, E::resumed);
    break;
  case S::stopping:
    if (!x.failure) {
      apply(self, E::stopped);
      break;
    }
    refuse(self, sandbox_waiter::goal::terminated, *x.failure);
    data.retrying = true;
    data.stop_retry = std::clamp(data.stop_retry * 2, data.options.stop_retry_first,
                                 data.options.stop_retry_longest);
    spdlog::warn("sandbox.stop_failed sandbox {}: {}; again in {} ms", data.record.id,
                 x.failure->message, data.stop_retry.count());
    self->delayed_send(self, data.stop_retry, stop_again{data.epoch});
    return;
  default:
    break;
  }
  converge(self);
}

void on_verb_overdue(self_pointer self, std::uint64_t epoch) {
  auto& data = self->state;
  if (epoch != data.epoch || !data.effect) {
    if (epoch == data.start) {
      data.start = 0;
      converge(self);
    }
    return;
  }
  error silent{errc::unavailable,
               fmt::format("no answer within {} ms", data.options.backend_timeout.count())};
  if (data.record.is == S::stopping)
    return on_verb_done(self, {epoch, silent, {}});
  if (epoch == data.start)
    data.start = 0;
  data.failure = silent;
  auto cause = data.record.is == S::starting ? end_cause::start_failed : end_cause::infrastructure;
  fail(self, {cause, fmt::format("while {}: {}", data.record.is, silent.message)});
}

void on_stop_again(self_pointer self, std::uint64_t epoch) {
  auto& data = self->state;
  if (epoch != data.epoch || !data.retrying)
    return;
  data.retrying = false;
  converge(self);
}

} // namespace dsec::sandbox_parts
