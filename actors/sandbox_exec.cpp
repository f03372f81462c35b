#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using phase = pending_exec::phase;
using promise = caf::typed_response_promise<exec_result_ptr>;

/// How often an exec is joined again after contact was lost.
constexpr std::uint64_t attempts_max = 3;

void refuse(promise answer, const error& cause) {
  answer.deliver(to_caf(cause));
}

bool recorded(const pending_exec& x) {
  return x.call->spec.step.has_value();
}

std::shared_ptr<write_batch> batch_of(const sandbox_data& data, const pending_exec& x) {
  auto batch = std::make_shared<write_batch>();
  batch->steps.push_back({data.record.id, *x.call->spec.step, x.call->id, x.digest, {}});
  return batch;
}

void drop(self_pointer self, std::map<exec_id, pending_exec>::iterator at) {
  auto& data = self->state;
  for (auto ticket : at->second.tickets)
    data.tickets.erase(ticket);
  data.execs.erase(at);
  watch_idle(self);
}

/// It never ran, or what became of it cannot be recorded: the answer is an error.
void refuse_exec(self_pointer self, exec_id id, const error& cause) {
  auto& data = self->state;
  auto at = data.execs.find(id);
  if (at == data.execs.end())
    return;
  for (auto& answer : at->second.answers)
    answer.deliver(to_caf(cause));
  drop(self, at);
}

void answer_exec(self_pointer self, exec_id id, const exec_result_ptr& outcome) {
  auto& data = self->state;
  auto at = data.execs.find(id);
  if (at == data.execs.end())
    return;
  for (auto& answer : at->second.answers)
    answer.deliver(outcome);
  drop(self, at);
  if (!ended(data))
    data.services.kernel.forget(data.record.id, id);
}

/// A recorded step is durable before anyone sees its outcome.
void finish(self_pointer self, pending_exec& x, exec_result outcome) {
  auto& data = self->state;
  x.at = phase::finishing;
  auto id = x.call->id;
  note_exec_ended(self, x, &outcome.outcome);
  if (!recorded(x))
    return answer_exec(self, id, std::make_shared<const exec_result>(std::move(outcome)));
  auto batch = batch_of(data, x);
  carry_notes(data, *batch);
  auto& kept = batch->steps.front().result;
  kept = std::move(outcome);
  exec_result_ptr answer{batch, &*kept};
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then(
      [self, id, answer, step = *x.call->spec.step](ack) {
        auto& now = self->state;
        if (auto known = now.steps.find(step); known != now.steps.end())
          known->second.done = true;
        ++now.steps_recorded;
        self->send(now.services.node, step_recorded{now.record.id});
        answer_exec(self, id, answer);
      },
      [self, id](caf::error& cause) { refuse_exec(self, id, from_caf(cause, "the journal")); });
}

/// The result of one that nobody can say more of: what its caller has seen of it, if it ran.
exec_result
what_is_known(self_pointer self, const pending_exec& x, outcome_kind kind, std::string cause) {
  exec_result known;
  known.outcome.kind = kind;
  known.outcome.cause = std::move(cause);
  if (x.attempt > 0)
    known.duration =
      std::chrono::duration_cast<std::chrono::milliseconds>(self->clock().now() - x.began);
  if (x.noted)
    x.noted->tell(known);
  return known;
}

/// It surely never ran: nothing stays recorded of its step, which any request may take.
void forget_step(self_pointer self, pending_exec& x, const error& cause) {
  auto& data = self->state;
  x.at = phase::finishing;
  auto id = x.call->id;
  auto step = *x.call->spec.step;
  auto batch = std::make_shared<write_batch>();
  batch->refused_steps.emplace_back(data.record.id, step);
  note_exec_ended(self, x, nullptr, cause.message);
  carry_notes(data, *batch);
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then(
      [self, id, step, cause](ack) {
        self->state.steps.erase(step);
        refuse_exec(self, id, cause);
      },
      [self, id](caf::error& e) { refuse_exec(self, id, from_caf(e, "the journal")); });
}

void finish_cancelled(self_pointer self, pending_exec& x) {
  finish(self, x, what_is_known(self, x, outcome_kind::cancelled, "before it began"));
}

/// Takes it up; `begun`: its step is durable already, from an earlier life.
void admit(self_pointer self, const exec_message& x, std::string digest, bool begun,
           promise answer) {
  auto& data = self->state;
  if (data.execs.size() >= data.options.pending_max)
    return refuse(std::move(answer),
                  {errc::exhausted,
                   fmt::format("sandbox {}: {} execs are pending, the limit is {}", data.record.id,
                               data.execs.size(), data.options.pending_max)});
  auto step = x.spec->step;
  auto id = step ? *step : data.next_exec++;
  auto call = std::make_shared<exec_call>();
  call->id = id;
  call->spec = complete(data.record.environment, *x.spec);
  pending_exec exec;
  if (x.sink)
    exec.noted = std::make_shared<noted_output>(x.sink, call->spec.spool_bytes);
  call->sink = exec.noted;
  exec.call = std::move(call);
  exec.digest = std::move(digest);
  exec.answers.push_back(std::move(answer));
  if (x.ticket != 0) {
    exec.tickets.push_back(x.ticket);
    data.tickets[x.ticket] = id;
  }
  bool record = step && !begun;
  exec.told = begun;
  if (record) {
    exec.at = phase::recording;
    data.steps[*step] = {exec.digest, false};
    auto batch = batch_of(data, exec);
    note_exec_started(self, exec);
    carry_notes(data, *batch);
    self->request(data.services.journal, caf::infinite, write_batch_ptr{std::move(batch)})
      .then(
        [self, id](ack) {
          auto at = self->state.execs.find(id);
          if (at == self->state.execs.end() || at->second.at != phase::recording)
            return;
          at->second.at = phase::queued;
          converge(self);
        },
        [self, id](caf::error& cause) { refuse_exec(self, id, from_caf(cause, "the journal")); });
  }
  data.execs.emplace(id, std::move(exec));
  converge(self);
}

void request_known(self_pointer self, const exec_message& x, std::string digest, promise answer) {
  auto& data = self->state;
  auto step = x.spec->step;
  if (step && data.shown == sandbox_state::terminated)
    return recall_step(self, *step, std::move(digest), std::move(answer));
  auto known = step ? data.steps.find(*step) : data.steps.end();
  bool begun = known != data.steps.end();
  if (begun && known->second.digest != digest)
    return refuse(std::move(answer),
                  {errc::diverged, fmt::format("sandbox {}, step {}: recorded with another request",
                                               data.record.id, *step)});
  if (begun && known->second.done)
    return recall_step(self, *step, std::move(digest), std::move(answer));
  auto pending = begun ? data.execs.find(*step) : data.execs.end();
  if (pending != data.execs.end() && pending->second.at == phase::finishing) {
    pending->second.answers.push_back(std::move(answer));
    return;
  }
  if (auto why = demand_running(self))
    return refuse(std::move(answer), *why);
  if (pending == data.execs.end())
    return admit(self, x, std::move(digest), begun, std::move(answer));
  pending->second.answers.push_back(std::move(answer));
  if (x.ticket != 0) {
    pending->second.tickets.push_back(x.ticket);
    data.tickets[x.ticket] = *step;
  }
  converge(self);
}

/// Starts it, or joins it.
void ask_backend(self_pointer self, const pending_exec& x) {
  auto& data = self->state;
  data.services.kernel.exec(
    data.record.id, x.call,
    [to = sandbox_inside{self}, exec = x.call->id,
     attempt = x.attempt](result<exec_result> outcome) {
      caf::anon_send(to,
                     exec_done{exec, attempt,
                               std::make_shared<const result<exec_result>>(std::move(outcome))});
    });
}

} // namespace

void request_exec(self_pointer self, const exec_message& x, promise answer) {
  if (auto valid = validate(*x.spec); !valid)
    return refuse(std::move(answer), valid.error());
  if (x.spec->step && *x.spec->step >= unrecorded_execs)
    return refuse(std::move(answer), {errc::invalid_argument,
                                      fmt::format("step {}: must be below 2^63", *x.spec->step)});
  auto digest = x.spec->step ? request_digest(*x.spec) : std::string{};
  request_known(self, x, std::move(digest), std::move(answer));
}

void start_execs(self_pointer self) {
  auto& data = self->state;
  std::vector<exec_id> cancelled;
  for (auto& [id, x] : data.execs) {
    if (x.at != phase::queued)
      continue;
    if (x.cancelled) {
      cancelled.push_back(id);
      continue;
    }
    x.at = phase::running;
    note_exec_started(self, x);
    if (x.attempt++ == 0)
      x.began = self->clock().now();
    else if (x.noted)
      x.noted->begin_again();
    ask_backend(self, x);
  }
  for (auto id : cancelled)
    finish_cancelled(self, data.execs.at(id));
}

void on_exec_done(self_pointer self, const exec_done& done) {
  auto& data = self->state;
  auto at = data.execs.find(done.exec);
  if (at == data.execs.end() || at->second.at != phase::running
      || at->second.attempt != done.attempt)
    return;
  auto& x = at->second;
  const auto& outcome = *done.outcome;
  if (outcome) {
    auto known = *outcome;
    if (over(data.record.is) && x.noted && known.out_bytes + known.err_bytes == 0)
      x.noted->tell(known);
    if (ended_with_its_sandbox(known.outcome.kind) && !over(data.shown)) {
      // It is answered once that is durable.
      x.said = known;
      x.at = phase::orphaned;
      return end_as_told(self, known.outcome);
    }
    return finish(self, x, as_recorded(data, std::move(known)));
  }
  if (outcome.error().code != errc::unavailable) {
    if (recorded(x))
      return forget_step(self, x, outcome.error());
    note_exec_ended(self, x, nullptr, outcome.error().message);
    return refuse_exec(self, done.exec, outcome.error());
  }
  if (x.attempt >= attempts_max)
    return finish(self, x,
                  what_is_known(self, x, outcome_kind::infrastructure,
                                fmt::format("effect unknown: {}", outcome.error().message)));
  x.at = phase::orphaned;
  if (over(data.record.is))
    return converge(self);
  if (!data.probing)
    probe(self);
}

void cancel(self_pointer self, std::uint64_t ticket) {
  auto& data = self->state;
  auto known = data.tickets.find(ticket);
  if (known == data.tickets.end())
    return;
  auto& x = data.execs.at(known->second);
  x.cancelled = true;
  if (x.at == phase::running)
    data.services.kernel.cancel(data.record.id, x.call->id);
  else if (x.at == phase::queued)
    finish_cancelled(self, x);
}

void finish_execs(self_pointer self, bool running_too) {
  auto& data = self->state;
  std::vector<exec_id> open;
  for (auto& [id, x] : data.execs)
    if (x.at != phase::finishing && (running_too || x.at != phase::running))
      open.push_back(id);
  for (auto id : open) {
    auto& x = data.execs.at(id);
    auto end = outcome_of_end(data.record, x.attempt > 0);
    finish(self, x,
           x.said ? as_recorded(data, *std::move(x.said))
                  : what_is_known(self, x, end.kind, std::move(end.cause)));
  }
  if (running_too)
    finish_begun_steps(self);
}

bool execs_wait(const sandbox_data& data) {
  return std::ranges::any_of(data.execs,
                             [](const auto& x) { return x.second.at == phase::queued; });
}

void refuse_waiting_execs(self_pointer self, const error& cause) {
  std::vector<exec_id> waiting;
  for (const auto& [id, x] : self->state.execs)
    if (x.at == phase::queued)
      waiting.push_back(id);
  for (auto id : waiting)
    refuse_exec(self, id, cause);
}

void end_abandoned_execs(self_pointer self, const std::vector<exec_id>& running) {
  auto& data = self->state;
  for (auto id : running) {
    if (id < unrecorded_execs || data.execs.contains(id))
      continue;
    auto call = std::make_shared<exec_call>();
    call->id = id;
    pending_exec x;
    x.at = phase::running;
    x.call = std::move(call);
    x.attempt = 1;
    x.told = true;
    x.abandoned = true;
    data.services.kernel.cancel(data.record.id, id);
    ask_backend(self, data.execs.emplace(id, std::move(x)).first->second);
  }
}

void rejoin_execs(self_pointer self) {
  for (auto& [id, x] : self->state.execs)
    if (x.at == phase::orphaned && !x.said)
      x.at = phase::queued;
}

void lose_execs(self_pointer self) {
  for (auto& [id, x] : self->state.execs) {
    if (recorded(x) || x.attempt == 0 || x.at == phase::finishing)
      continue;
    auto known =
      what_is_known(self, x, outcome_kind::node_lost, "the node process that ran it has ended");
    for (auto& answer : std::exchange(x.answers, {}))
      answer.deliver(exec_result_ptr{std::make_shared<const exec_result>(known)});
  }
}

} // namespace dsec::sandbox_parts
