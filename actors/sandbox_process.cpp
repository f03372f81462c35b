// What the actor does about processes. They are dsec-init's to keep: the actor passes on what is
// asked, brings the sandbox back for it if it must, and knows which of them live, because it waits
// for the end of each.

#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using asker = pending_process::asker;
using calls = std::map<std::uint64_t, pending_process>;

/// Of callers, at once: readers and waiters stay for as long as a process lives.
constexpr std::size_t calls_max = 4096;
/// How often something is asked again after contact was lost.
constexpr unsigned attempts_max = 3;

template <class... T>
bool is_one_of(const process_request& x) {
  return (std::holds_alternative<T>(x) || ...);
}

bool thaws(const process_request& x) {
  return is_one_of<process_start, process_input, process_resize, process_signal, process_kill>(x);
}

/// Whether it is answered at once. The rest waits for the process, for as long as that takes.
bool is_short(const process_request& x) {
  return !is_one_of<process_wait, process_attach, process_input>(x);
}

/// Whether it may be asked twice.
bool may_be_repeated(const process_request& x) {
  return is_one_of<process_start, process_wait, process_list>(x);
}

bool has_supervisor(sandbox_state is) {
  return is == S::running || is == S::pausing || is == S::paused || is == S::reclaiming
         || is == S::reclaimed || is == S::resuming;
}

void ask(self_pointer self, pending_process call) {
  self->state.process_calls.emplace(self->state.next_ticket++, std::move(call));
}

/// It lives; from now on its end is heard of.
void watch(self_pointer self, exec_id id) {
  if (!self->state.live_processes.try_emplace(id).second)
    return;
  pending_process call;
  call.whose = asker::watch;
  call.request = std::make_shared<const process_request>(process_wait{id});
  ask(self, std::move(call));
}

void tell_waiters(self_pointer self, exec_id id, const process_reply_ptr& reply,
                  const error& otherwise) {
  auto live = self->state.live_processes.extract(id);
  if (live.empty())
    return;
  for (auto& waiter : live.mapped().waiters) {
    if (reply)
      waiter.deliver(reply);
    else
      waiter.deliver(to_caf(otherwise));
  }
  watch_idle(self);
}

/// Whether the process went, or goes, with the sandbox, if that has ended.
bool goes_along(const sandbox_data& data, exec_id id) {
  return std::ranges::find(data.record.processes, id) != data.record.processes.end();
}

/// What is known of one that a sandbox took along, and that said nothing.
process_reply_ptr ended_with(const sandbox_data& data) {
  auto reply = std::make_shared<process_reply>();
  reply->outcome = lost_with(data.record);
  return reply;
}

/// What it said itself, with the end of the sandbox as the record says it. That end is told as its
/// own with the sandbox's.
void tell_end(self_pointer self, exec_id id, const process_reply& said) {
  auto& data = self->state;
  auto known = std::make_shared<process_reply>();
  known->outcome = as_recorded(data, said.outcome);
  if (!ended_with_its_sandbox(said.outcome.outcome.kind))
    note_process_ended(self, id, known->outcome.outcome);
  tell_waiters(self, id, known, {});
}

void on_watched(self_pointer self, exec_id id,
                const std::shared_ptr<const result<process_reply>>& x) {
  auto& data = self->state;
  if (!*x && over(data.record.is))
    return tell_waiters(self, id, ended_with(data), {});
  if (!*x) {
    note_process_ended(self, id, std::nullopt);
    return tell_waiters(self, id, nullptr, x->error());
  }
  process_reply_ptr reply{x, &**x};
  const auto& how = reply->outcome.outcome;
  if (!ended_with_its_sandbox(how.kind) || over(data.shown))
    return tell_end(self, id, *reply);
  data.live_processes[id].said = reply;
  end_as_told(self, how);
}

void on_looked(self_pointer self, const pending_process& call, const result<process_reply>& x) {
  auto& data = self->state;
  data.processes_known = true;
  if (!x)
    return watch_idle(self);
  auto gone = call.recorded;
  for (const auto& each : x->processes) {
    std::erase(gone, each.id);
    if (each.outcome) {
      note_process_ended(self, each.id, each.outcome);
      continue;
    }
    note_process_started(self, each.id); // Unless it was, before the node died.
    watch(self, each.id);
  }
  // Ended, and dropped since.
  for (auto id : gone)
    note_process_ended(self, id, std::nullopt);
  start_processes(self);
  watch_idle(self);
}

void answer(self_pointer self, pending_process& call,
            const std::shared_ptr<const result<process_reply>>& x) {
  if (!*x && x->error().code == errc::unavailable)
    return answer_lost(self, call.answer, x->error());
  if (!*x) {
    auto over = ended_already(self->state);
    call.answer.deliver(to_caf(over ? *over : x->error()));
    return;
  }
  if (auto* start = std::get_if<process_start>(&*call.request)) {
    note_process_started(self, start->id);
    watch(self, start->id);
    start_processes(self);
  }
  call.answer.deliver(process_reply_ptr{x, &**x});
  watch_idle(self);
}

/// An attachment that the backend was not asked for so far and need not be any more.
void drop_unstarted(sandbox_data& data, std::uint64_t ticket) {
  auto at = std::ranges::find_if(data.process_calls, [&](const auto& x) {
    auto* attach = std::get_if<process_attach>(&*x.second.request);
    return attach && attach->ticket == ticket && !x.second.started;
  });
  if (at == data.process_calls.end())
    return;
  at->second.answer.deliver(process_reply_ptr{std::make_shared<const process_reply>()});
  data.process_calls.erase(at);
}

/// The sandbox's end is the answer.
void finish(self_pointer self, pending_process& call) {
  auto& data = self->state;
  switch (call.whose) {
  case asker::look:
    data.processes_known = true;
    return;
  case asker::watch:
    return tell_waiters(self, std::get<process_wait>(*call.request).id, ended_with(data), {});
  case asker::caller:
    if (auto* wait = std::get_if<process_wait>(&*call.request); wait && goes_along(data, wait->id))
      call.answer.deliver(ended_with(data));
    else
      call.answer.deliver(to_caf(*ended_already(data)));
    return;
  }
}

/// Takes up whoever waits for a process that is known to live, or that goes with the sandbox.
bool join_end(self_pointer self, exec_id id,
              caf::typed_response_promise<process_reply_ptr> promise) {
  auto& data = self->state;
  if (auto live = data.live_processes.find(id); live != data.live_processes.end()) {
    live->second.waiters.push_back(std::move(promise));
    return true;
  }
  if (!over(data.shown) || !goes_along(data, id))
    return false;
  promise.deliver(ended_with(data));
  return true;
}

} // namespace

caf::result<process_reply_ptr> request_process(self_pointer self, const process_message& x) {
  auto& data = self->state;
  if (data.process_calls.size() >= calls_max)
    return to_caf({errc::exhausted,
                   fmt::format("sandbox {}: {} requests about processes are pending, the limit is "
                               "{}",
                               data.record.id, data.process_calls.size(), calls_max)});
  pending_process call;
  call.request = x.request;
  call.thaws = thaws(*x.request);
  if (auto* start = std::get_if<process_start>(&*x.request)) {
    if (auto valid = validate(start->spec); !valid)
      return to_caf(valid.error());
    auto full = *start;
    full.spec.command = complete(data.record.environment, std::move(full.spec.command));
    full.id = data.next_exec++;
    call.request = std::make_shared<const process_request>(std::move(full));
  }
  if (data.broken)
    return to_caf(*data.broken);
  auto promise = self->make_response_promise<process_reply_ptr>();
  auto* wait = std::get_if<process_wait>(&*call.request);
  if (wait && join_end(self, wait->id, promise))
    return promise;
  if (auto why = call.thaws ? demand_running(self) : ended_already(data)) {
    promise.deliver(to_caf(*why));
    return promise;
  }
  if (auto* detach = std::get_if<process_detach>(&*call.request))
    drop_unstarted(data, detach->ticket);
  call.answer = promise;
  ask(self, std::move(call));
  converge(self);
  return promise;
}

void on_process_done(self_pointer self, const process_done& x) {
  auto& data = self->state;
  auto at = data.process_calls.extract(x.ticket);
  if (at.empty())
    return;
  auto& call = at.mapped();
  const auto& outcome = *x.outcome;
  const bool lost = !outcome && outcome.error().code == errc::unavailable;
  if (lost && may_be_repeated(*call.request) && call.attempt < attempts_max && !data.broken) {
    // Whether it lives is being found out; if it does, this is asked again.
    call.started = over(data.record.is);
    ask(self, std::move(call));
    if (over(data.record.is))
      return converge(self);
    if (!data.probing)
      probe(self);
    return;
  }
  switch (call.whose) {
  case asker::caller:
    return answer(self, call, x.outcome);
  case asker::watch:
    return on_watched(self, std::get<process_wait>(*call.request).id, x.outcome);
  case asker::look:
    return on_looked(self, call, outcome);
  }
}

void on_process_overdue(self_pointer self, std::uint64_t ticket) {
  auto& data = self->state;
  auto at = data.process_calls.extract(ticket);
  if (at.empty())
    return;
  error silent{errc::unavailable,
               fmt::format("process of sandbox {}: its supervisor did not answer within {} ms",
                           data.record.id, data.options.backend_timeout.count())};
  if (at.mapped().whose == asker::caller)
    at.mapped().answer.deliver(to_caf(silent));
  else
    on_looked(self, at.mapped(), silent);
}

void start_processes(self_pointer self) {
  auto& data = self->state;
  if (data.probing || data.broken || !has_supervisor(data.record.is))
    return;
  for (auto& [ticket, call] : data.process_calls) {
    if (call.started || (call.thaws && data.record.is != S::running))
      continue;
    call.started = true;
    ++call.attempt;
    if (is_short(*call.request))
      expect(self, ticket);
    data.services.kernel.process(
      data.record.id, *call.request,
      [to = sandbox_inside{self}, at = ticket](result<process_reply> reply) {
        caf::anon_send(
          to, process_done{at, std::make_shared<const result<process_reply>>(std::move(reply))});
      });
  }
}

bool processes_wait(const sandbox_data& data) {
  return std::ranges::any_of(data.process_calls,
                             [](const auto& x) { return x.second.thaws && !x.second.started; });
}

void refuse_waiting_processes(self_pointer self, const error& cause) {
  auto& all = self->state.process_calls;
  for (auto at = all.begin(); at != all.end();) {
    auto next = std::next(at);
    if (at->second.thaws && !at->second.started)
      all.extract(at).mapped().answer.deliver(to_caf(cause));
    at = next;
  }
}

bool processes_live(const sandbox_data& data) {
  return !data.processes_known || !data.live_processes.empty()
         || std::ranges::any_of(data.process_calls, [](const auto& x) { return x.second.thaws; });
}

void look_for_processes(self_pointer self) {
  auto& data = self->state;
  pending_process call;
  call.whose = asker::look;
  call.request = std::make_shared<const process_request>(process_list{});
  call.recorded = data.record.processes;
  ask(self, std::move(call));
}

void finish_processes(self_pointer self, bool running_too) {
  std::vector<exec_id> told;
  for (const auto& [id, x] : self->state.live_processes)
    if (x.said)
      told.push_back(id);
  for (auto id : told)
    tell_end(self, id, *process_reply_ptr{self->state.live_processes.at(id).said});
  std::vector<std::uint64_t> over;
  for (const auto& [ticket, call] : self->state.process_calls)
    if (running_too || !call.started)
      over.push_back(ticket);
  for (auto ticket : over)
    if (auto at = self->state.process_calls.extract(ticket); !at.empty())
      finish(self, at.mapped());
}

void refuse_processes(self_pointer self, const error& cause) {
  auto& data = self->state;
  for (auto& [ticket, call] : std::exchange(data.process_calls, {}))
    if (call.whose == asker::caller)
      call.answer.deliver(to_caf(cause));
  for (auto& [id, x] : std::exchange(data.live_processes, {}))
    for (auto& waiter : x.waiters)
      waiter.deliver(to_caf(cause));
}

} // namespace dsec::sandbox_parts
