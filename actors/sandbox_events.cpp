#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using K = event_kind;

/// How long what is told of unrecorded commands may wait for a batch to go with, so that of many
/// in a row several are one write: what a killed process may lose of it.
constexpr std::chrono::milliseconds notes_wait{10};

job_event& note(self_pointer self, K kind) {
  auto& data = self->state;
  return data.noted.emplace_back(about(data.record, kind, wall_ms(self)));
}

/// Of something in it: why the sandbox itself ended is told with its own end.
job_event& note(self_pointer self, K kind, exec_id exec) {
  auto& x = note(self, kind);
  x.cause = end_cause::none;
  x.detail.clear();
  x.exec = exec;
  return x;
}

void send_notes_soon(self_pointer self) {
  if (!std::exchange(self->state.notes_armed, true))
    self->delayed_send(self, notes_wait, notes_due{});
}

/// The end of the sandbox is the end of whatever ran in it. The record keeps which processes that
/// were.
void note_processes_ended(self_pointer self) {
  const auto& record = self->state.record;
  for (auto id : record.processes)
    note(self, K::process_ended, id).outcome = outcome_of_end(record, true);
}

} // namespace

std::int64_t wall_ms(self_pointer self) {
  auto now = self->clock().now().time_since_epoch();
  return self->state.options.wall_offset_ms
         + std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::optional<event_kind> untold(const sandbox_record& x) {
  auto unless = [&](K kind) {
    return x.told == kind ? std::nullopt : std::optional{kind};
  };
  switch (x.is) {
  case S::running:
    if (x.told == K::created)
      return K::running;
    return x.told == K::paused || x.told == K::reclaimed ? std::optional{K::resumed} : std::nullopt;
  case S::paused:
    return unless(K::paused);
  case S::reclaimed:
    return unless(K::reclaimed);
  case S::failed:
    return unless(K::failed);
  case S::terminated:
    return unless(K::stopped);
  case S::pending:
  case S::starting:
  case S::pausing:
  case S::reclaiming:
  case S::resuming:
  case S::stopping:
  case S::lost:
    break;
  }
  return std::nullopt;
}

void write_record(self_pointer self, write_batch& batch) {
  auto& data = self->state;
  if (untold(data.record) == K::stopped)
    note_processes_ended(self);
  if (auto kind = untold(data.record)) {
    note(self, *kind);
    data.record.told = *kind;
  }
  batch.sandboxes.push_back(data.record);
  data.noted_in_record = false;
  carry_notes(data, batch);
}

void carry_notes(sandbox_data& data, write_batch& batch) {
  if (std::exchange(data.noted_in_record, false))
    batch.sandboxes.push_back(data.record);
  batch.events = std::exchange(data.noted, {});
}

void send_notes(self_pointer self) {
  auto& data = self->state;
  if (data.noted.empty() || data.broken)
    return;
  data.notes_sent = self->clock().now();
  auto batch = std::make_shared<write_batch>();
  carry_notes(data, *batch);
  caf::anon_send(data.services.journal, write_batch_ptr{std::move(batch)});
}

void note_exec_started(self_pointer self, pending_exec& x) {
  if (std::exchange(x.told, true))
    return;
  auto& told = note(self, K::exec_started, x.call->id);
  told.step = x.call->spec.step;
  if (!told.step)
    send_notes_soon(self);
}

void note_exec_ended(self_pointer self, const pending_exec& x, const outcome* how,
                     std::string detail) {
  if (!x.told)
    return;
  auto& told = note(self, K::exec_ended, x.call->id);
  told.step = x.call->spec.step;
  if (how)
    told.outcome = *how;
  told.detail = x.abandoned ? "the node process that was asked for it is gone" : std::move(detail);
  if (told.step)
    return;
  if (self->clock().now() - self->state.notes_sent < notes_wait)
    send_notes_soon(self);
  else
    send_notes(self);
}

void note_step_ended(self_pointer self, std::uint64_t step, const outcome& how) {
  auto& told = note(self, K::exec_ended, step);
  told.step = step;
  told.outcome = how;
}

void note_process_started(self_pointer self, exec_id id) {
  auto& data = self->state;
  if (std::ranges::find(data.record.processes, id) != data.record.processes.end())
    return;
  data.record.processes.push_back(id);
  data.noted_in_record = true;
  note(self, K::process_started, id);
  send_notes(self);
}

void note_process_ended(self_pointer self, exec_id id, std::optional<outcome> how) {
  auto& data = self->state;
  if (std::erase(data.record.processes, id) == 0)
    return;
  data.noted_in_record = true;
  note(self, K::process_ended, id).outcome = std::move(how);
  send_notes(self);
}

} // namespace dsec::sandbox_parts
