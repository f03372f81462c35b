#include "actors/sandbox.hpp"

#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>

#include <utility>

namespace dsec {

namespace {

using namespace sandbox_parts;
using goal = sandbox_waiter::goal;

bool exists(sandbox_state is) {
  return is != sandbox_state::pending && is != sandbox_state::starting
         && is != sandbox_state::stopping && is != sandbox_state::failed
         && is != sandbox_state::terminated;
}

void begin(self_pointer self) {
  auto& data = self->state;
  if (data.probing)
    return probe(self);
  if (std::exchange(data.settling, false))
    self->send(data.services.node, sandbox_settled{data.record.id});
  converge(self);
}

caf::result<reclaim_report> pause(self_pointer self, const pause_request& x) {
  auto& data = self->state;
  auto& record = data.record;
  if (data.broken)
    return to_caf(*data.broken);
  if (auto why = ended_already(data))
    return to_caf(*why);
  auto wanted = x.reclaim || record.wanted == sandbox_state::reclaimed ? sandbox_state::reclaimed
                                                                       : sandbox_state::paused;
  data.intent_dirty |= record.wanted != wanted || (x.held && !record.held);
  record.wanted = wanted;
  record.held |= x.held;
  overtake(self, {goal::resumed}, "pause");
  auto promise = self->make_response_promise<reclaim_report>();
  wait(self, x.reclaim ? goal::reclaimed : goal::paused, promise);
  converge(self);
  return promise;
}

caf::result<ack> resume(self_pointer self) {
  auto& data = self->state;
  if (!data.broken) {
    if (auto why = ended_already(data))
      return to_caf(*why);
    data.intent_dirty |= data.record.held;
    data.record.held = false;
  }
  if (auto why = demand_running(self))
    return to_caf(*why);
  auto promise = self->make_response_promise<ack>();
  wait(self, goal::resumed, promise);
  converge(self);
  return promise;
}

caf::result<ack> stop(self_pointer self) {
  auto& data = self->state;
  if (data.broken)
    return to_caf(*data.broken);
  data.record.wanted = sandbox_state::terminated;
  overtake(self, {goal::up, goal::resumed, goal::paused, goal::reclaimed}, "stop");
  auto promise = self->make_response_promise<ack>();
  wait(self, goal::terminated, promise);
  converge(self);
  return promise;
}

/// CAF never answers for a promise that is dropped.
void answer_everybody(self_pointer self, const error& cause) {
  journal_failed(self, cause);
  for (auto& [ticket, promise] : std::exchange(self->state.stats, {}))
    promise.deliver(to_caf(cause));
}

} // namespace

sandbox_inside::behavior_type
sandbox(self_pointer self, sandbox_seed seed, sandbox_services services, sandbox_options options) {
  auto& data = self->state;
  data.record = std::move(seed.record);
  data.shown = data.record.is;
  data.clocks.shown = data.record.clocks;
  data.clocks.begun_here = seed.origin == sandbox_origin::created;
  data.services = std::move(services);
  data.options = options;
  data.next_exec = seed.first_exec;
  for (const auto& x : seed.steps) {
    data.steps[x.step] = {x.request_digest, x.result.has_value()};
    data.steps_recorded += x.result.has_value();
  }
  data.state_dirty = untold(data.record).has_value();
  data.settling = seed.origin != sandbox_origin::created;
  bool found = seed.origin == sandbox_origin::recovered || seed.origin == sandbox_origin::restarted;
  data.probing = found && exists(data.record.is);
  data.processes_known = !data.probing;
  if (seed.origin == sandbox_origin::restarted && !data.probing) {
    // It may still build: a tear-down waits for as long as that may take.
    data.start = ++data.epoch;
    self->delayed_send(self, data.options.backend_timeout, verb_overdue{data.start});
  }
  if (seed.origin == sandbox_origin::rebooted)
    data.fault = sandbox_end{end_cause::infrastructure, "the machine was rebooted"};
  self->set_exit_handler([self](caf::exit_msg& x) {
    if (x.reason == caf::exit_reason::user_shutdown)
      lose_execs(self);
    answer_everybody(self, {errc::unavailable, fmt::format("sandbox {}: the runtime is closing",
                                                           self->state.record.id)});
    self->quit(std::move(x.reason));
  });
  self->set_exception_handler([self](caf::scheduled_actor*, std::exception_ptr&) -> caf::error {
    answer_everybody(self, {errc::unavailable, fmt::format("sandbox {}: its actor is restarted",
                                                           self->state.record.id)});
    return caf::sec::runtime_error;
  });
  self->send(self, begin_life{});
  return {
    [self](const exec_message& x) -> caf::result<exec_result_ptr> {
      auto promise = self->make_response_promise<exec_result_ptr>();
      request_exec(self, x, promise);
      return promise;
    },
    [self](const cancel_exec& x) { cancel(self, x.ticket); },
    [self](const signal_exec& x) {
      auto& now = self->state;
      auto known = now.tickets.find(x.ticket);
      if (known != now.tickets.end()
          && now.execs.at(known->second).at == pending_exec::phase::running)
        now.services.kernel.signal(now.record.id, known->second, x.number);
    },
    [self](const file_message& x) { return request_file(self, x); },
    [self](const process_message& x) { return request_process(self, x); },
    [self](const set_clocks& x) { return request_clocks(self, x); },
    [self](const pause_request& x) { return pause(self, x); },
    [self](const resume_request&) { return resume(self); },
    [self](const stop_request&) { return stop(self); },
    [self](const info_request&) { return info_of(self->state); },
    [self](const stats_request&) { return request_stats(self); },
    [self](const await_running&) -> caf::result<ack> {
      if (self->state.broken)
        return to_caf(*self->state.broken);
      auto promise = self->make_response_promise<ack>();
      wait(self, goal::up, promise);
      converge(self);
      return promise;
    },
    [self](const begin_life&) { begin(self); },
    [self](const verb_done& x) { on_verb_done(self, x); },
    [self](const verb_overdue& x) { on_verb_overdue(self, x.epoch); },
    [self](const stop_again& x) { on_stop_again(self, x.epoch); },
    [self](answers_due) { on_answers_due(self); },
    [self](notes_due) {
      self->state.notes_armed = false;
      send_notes(self);
    },
    [self](const probe_done& x) { on_probe_done(self, x); },
    [self](const fate_done& x) { on_fate_done(self, x); },
    [self](const exec_done& x) { on_exec_done(self, x); },
    [self](const file_done& x) { on_file_done(self, x); },
    [self](const process_done& x) { on_process_done(self, x); },
    [self](const stats_done& x) { on_stats_done(self, x); },
    [self](const clocks_done& x) { on_clocks_done(self, x); },
    [self](const idle_due& x) { on_idle_due(self, x); },
    [self](const idle_look& x) { on_idle_look(self, x); },
    [self](const ended_notice& x) { fail(self, x.end); },
  };
}

} // namespace dsec
