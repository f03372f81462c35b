#include "actors/job.hpp"

#include "actors/errors.hpp"
#include "actors/gather.hpp"
#include "actors/job_parts.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace dsec {

namespace {

using namespace job_parts;

/// Asks every node; the answer says that all have done it.
template <class Request>
void tell_nodes(self_pointer self, const Request& request, std::function<void(ack)> done,
                std::function<void(caf::error)> failed) {
  ask_nodes<ack>(
    self, self->state.nodes, request, ack{}, [](ack&, const ack&) {}, std::move(done),
    std::move(failed));
}

/// Either way of an answer that is owed.
template <class T>
auto deliver_to(open_answers::answer<T> to) {
  return [to](auto x) {
    to.deliver(std::move(x));
  };
}

void add_report(preempt_report& sum, const preempt_report& x) {
  sum.sandboxes += x.sandboxes;
  sum.reclaimed += x.reclaimed;
  sum.failed += x.failed;
  sum.before_bytes += x.before_bytes;
  sum.after_bytes += x.after_bytes;
}

void renew(self_pointer self) {
  for (const auto& x : self->state.nodes)
    self->send(x.node, renew_job{self->state.record.id, self->state.record.lease});
}

/// A third of the shorter deadline: two renewals may be lost.
std::chrono::milliseconds renewal_period(const lease_terms& x) {
  if (x.pause_after.count() == 0)
    return x.stop_after / 3;
  if (x.stop_after.count() == 0)
    return x.pause_after / 3;
  return std::min(x.pause_after, x.stop_after) / 3;
}

void tick(self_pointer self) {
  auto& data = self->state;
  auto period = renewal_period(data.record.lease);
  data.ticking = data.record.state != job_state::closed && period.count() > 0;
  if (!data.ticking)
    return;
  renew(self);
  self->delayed_send(self, period, gateway_tick{});
}

std::int64_t wall_ms(self_pointer self) {
  auto now = self->clock().now().time_since_epoch();
  return self->state.services.wall_offset_ms
         + std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

caf::error closed(const job_record& x, std::string_view verb) {
  return to_caf({errc::invalid_state, fmt::format("{} job {}: it is closed", verb, x.id)});
}

caf::result<preempt_report> preempt(self_pointer self, preempt_mode mode) {
  auto& record = self->state.record;
  if (record.state == job_state::closed)
    return closed(record, "preempt");
  record.state = job_state::preempted;
  record.preempted_until = mode;
  auto answer = self->state.owed.owe<preempt_report>(self);
  persist(
    self,
    [self, mode, answer] {
      const auto& now = self->state;
      spdlog::info("job.preempted job {} {}", now.record.id, mode);
      ask_nodes<preempt_report>(self, now.nodes, preempt_request{now.record.id, mode},
                                preempt_report{}, add_report,
                                std::function<void(preempt_report)>{deliver_to(answer)},
                                deliver_to(answer));
    },
    deliver_to(answer));
  return answer;
}

template <class Request>
caf::result<ack> turn(self_pointer self, job_state to, Request request) {
  auto& record = self->state.record;
  record.state = to;
  auto answer = self->state.owed.owe<ack>(self);
  persist(
    self,
    [self, request, answer] { tell_nodes(self, request, deliver_to(answer), deliver_to(answer)); },
    deliver_to(answer));
  return answer;
}

/// Makes the job active in its record, and then in truth.
void start_anew(self_pointer self, open_answers::answer<ack> answer) {
  self->state.record.state = job_state::active;
  persist(
    self,
    [self, answer] {
      if (!self->state.ticking)
        tick(self);
      answer.deliver(ack{});
    },
    deliver_to(answer));
}

/// A closed job starts anew: its former sandboxes end, if they have not, and are forgotten, so that
/// their idempotency keys name nothing any more.
caf::result<ack> reopen(self_pointer self) {
  auto answer = self->state.owed.owe<ack>(self);
  auto id = self->state.record.id;
  self->state.placed.clear();
  auto forgotten = [self, answer](ack) {
    start_anew(self, answer);
  };
  auto ended = [self, id, forgotten, answer](ack) {
    tell_nodes(self, forget_job{id}, forgotten, deliver_to(answer));
  };
  tell_nodes(self, close_job{id}, ended, deliver_to(answer));
  return answer;
}

/// A new lease ends a preemption: what was held is resumed, the rest comes back with its next
/// request.
caf::result<ack> open(self_pointer self, const open_job& x) {
  auto& record = self->state.record;
  bool was_closed = record.state == job_state::closed;
  bool anew = record.created_ms == 0 || was_closed;
  bool held =
    record.state == job_state::preempted && record.preempted_until == preempt_mode::until_resume;
  if (!anew && record.state == job_state::active && record.lease == x.lease)
    return ack{};
  if (anew)
    record.created_ms = std::max<std::int64_t>(wall_ms(self), 1);
  record.lease = x.lease;
  if (held) {
    if (!self->state.ticking)
      tick(self);
    return turn(self, job_state::active, resume_job{record.id});
  }
  if (was_closed)
    return reopen(self);
  auto answer = self->state.owed.owe<ack>(self);
  start_anew(self, answer);
  return answer;
}

} // namespace

namespace job_parts {

void persist(self_pointer self, std::function<void()> done,
             std::function<void(caf::error)> failed) {
  auto batch = std::make_shared<write_batch>();
  batch->jobs.push_back(self->state.record);
  self->request(self->state.services.journal, caf::infinite, write_batch_ptr{batch})
    .then([done = std::move(done)](ack) { done(); },
          [failed = std::move(failed)](caf::error& cause) { failed(std::move(cause)); });
}

} // namespace job_parts

job_inside::behavior_type
job(self_pointer self, job_record record, job_services services, std::vector<join_node> nodes) {
  auto& data = self->state;
  data.record = std::move(record);
  data.owed.debtor = fmt::format("job {}", data.record.id);
  data.next_index = data.record.next_index;
  data.fresh = data.next_index == 0;
  data.services = std::move(services);
  data.nodes = std::move(nodes);
  if (data.record.created_ms != 0)
    tick(self);
  return {
    [self](const create_batch& x) { return create(self, x); },
    [self](const preempt_job& x) { return preempt(self, x.mode); },
    [self](const resume_request&) -> caf::result<ack> {
      const auto& now = self->state.record;
      if (now.state == job_state::closed)
        return closed(now, "resume");
      return turn(self, job_state::active, resume_job{now.id});
    },
    [self](const stop_request&) {
      return turn(self, job_state::closed, close_job{self->state.record.id});
    },
    [self](const job_request&) {
      auto now = self->state.record;
      now.next_index = self->state.next_index;
      return now;
    },
    [self](const inventory_query& x) {
      auto& now = self->state;
      auto answer = now.owed.owe<inventory_ptr>(self);
      inventory_of_nodes(self, now.nodes, inventory_query{now.record.id, x.with_ended},
                         deliver_to(answer), deliver_to(answer));
      return caf::result<inventory_ptr>{answer};
    },
    [self](const open_job& x) { return open(self, x); },
    [self](const gateway_tick&) { tick(self); },
    [self](const nodes_changed& x) {
      self->state.nodes = x.nodes;
      if (self->state.ticking)
        renew(self);
    },
  };
}

} // namespace dsec
