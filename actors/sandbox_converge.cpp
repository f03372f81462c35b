#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <stdexcept>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using E = sandbox_event;
using permit = sandbox_data::permit;

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
  write_record(self, *batch);
  sandbox_record_ptr written{batch, &batch->sandboxes.front()};
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then(
      [self, written, clocks = data.clocks.asked](ack) {
        auto& now = self->state;
        now.writing = false;
        now.shown = written->is;
        clocks_written(self, clocks, written->clocks);
        self->send(now.services.node, sandbox_changed{written});
        converge(self);
      },
      [self](caf::error& cause) { journal_failed(self, from_caf(cause, "the journal")); });
}

/// It rests as it should while a request waits that a pause has overtaken before it began.
bool is_asked_for(const sandbox_data& data) {
  auto is = data.record.is;
  return (is == S::paused || is == S::reclaimed) && data.record.wanted == is && !data.probing
         && (execs_wait(data) || files_wait(data) || processes_wait(data));
}

} // namespace

bool over(sandbox_state x) {
  return x == sandbox_state::stopping || x == sandbox_state::terminated
         || x == sandbox_state::failed;
}

void apply(self_pointer self, E event) {
  auto& data = self->state;
  auto& record = data.record;
  auto target = next(record.is, event);
  if (!target)
    throw std::logic_error{
      fmt::format("sandbox {} cannot take '{}' while {}", record.id, event, record.is)};
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
  if (is_asked_for(data)) {
    // As if it were asked now: it comes back, or the request is told that it may not.
    auto why = demand_running(self);
    if (!why)
      return converge(self);
    refuse_waiting_execs(self, *why);
    refuse_waiting_files(self, *why);
    refuse_waiting_processes(self, *why);
  }
  if (over(data.record.is)) {
    finish_execs(self, data.record.is == S::terminated);
    finish_files(self);
    finish_processes(self, data.record.is == S::terminated);
    finish_lost(data, *ended(data));
    if (data.record.is == S::terminated)
      data.steps.clear();
  } else if (data.record.is == S::running && !data.probing) {
    start_execs(self);
    start_files(self);
  }
  start_processes(self);
  tell_clocks(self);
  watch_idle(self);
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
  finish_lost(data, cause);
  refuse_processes(self, cause);
  refuse_clocks(self, cause);
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
  return error{refusal_code(cause),
               fmt::format("sandbox {} is {} ({}{}{})", record.id,
                           over(record.is) ? record.is : S::stopping,
                           cause == end_cause::none ? end_cause::stopped : cause,
                           detail.empty() ? "" : ": ", detail)};
}

std::optional<error> ended_already(const sandbox_data& data) {
  auto why = ended(data);
  if (why)
    why->code = refusal_code(data.fault ? data.fault->cause : data.record.cause);
  return why;
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
          data.shown == S::terminated ? x.ended_ms : 0,
          data.clocks.shown};
}

} // namespace dsec::sandbox_parts
