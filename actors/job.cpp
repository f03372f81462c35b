#include "actors/job.hpp"

#include "actors/errors.hpp"
#include "actors/job_parts.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace dsec {

namespace {

using namespace job_parts;

/// An answer that several nodes have a part in.
template <class T>
struct gathering {
  T sum{};
  std::optional<caf::error> failure;
  std::size_t open = 0;
  std::function<void(T)> done;
  std::function<void(caf::error)> failed;

  void answered() {
    if (--open > 0)
      return;
    if (failure)
      failed(std::move(*failure));
    else
      done(std::move(sum));
  }
};

/// Asks every node; `add` takes one answer into the sum.
template <class T, class Answer, class Request, class Add>
void ask_nodes(self_pointer self, Request request, std::function<void(T)> done,
               std::function<void(caf::error)> failed, Add add, T start = {}) {
  auto all = std::make_shared<gathering<T>>();
  all->sum = std::move(start);
  all->done = std::move(done);
  all->failed = std::move(failed);
  all->open = self->state.nodes.size() + 1;
  for (const auto& x : self->state.nodes)
    self->request(x.node, caf::infinite, request)
      .then(
        [all, add](const Answer& part) {
          add(all->sum, part);
          all->answered();
        },
        [all](caf::error& cause) {
          all->failure = std::move(cause);
          all->answered();
        });
  all->answered();
}

/// The same, with the sum as the answer to a request.
template <class T, class Answer, class Request, class Add>
void ask_nodes(self_pointer self, Request request, caf::typed_response_promise<T> promise, Add add,
               T start = {}) {
  ask_nodes<T, Answer>(
    self, std::move(request), [promise](T sum) mutable { promise.deliver(std::move(sum)); },
    [promise](caf::error cause) mutable { promise.deliver(std::move(cause)); }, std::move(add),
    std::move(start));
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
  auto promise = self->make_response_promise<preempt_report>();
  persist(
    self,
    [self, mode, promise] {
      spdlog::info("job.preempted job {} {}", self->state.record.id, mode);
      ask_nodes<preempt_report, preempt_report>(self, preempt_request{self->state.record.id, mode},
                                                promise, add_report);
    },
    [promise](caf::error& cause) mutable { promise.deliver(std::move(cause)); });
  return promise;
}

template <class Request>
caf::result<ack> turn(self_pointer self, job_state to, Request request) {
  auto& record = self->state.record;
  record.state = to;
  auto promise = self->make_response_promise<ack>();
  persist(
    self,
    [self, request, promise] {
      ask_nodes<ack, ack>(self, request, promise, [](ack&, const ack&) {});
    },
    [promise](caf::error& cause) mutable { promise.deliver(std::move(cause)); });
  return promise;
}

/// Makes the job active in its record, and then in truth.
void start_anew(self_pointer self, caf::typed_response_promise<ack> promise) {
  self->state.record.state = job_state::active;
  persist(
    self,
    [self, promise]() mutable {
      if (!self->state.ticking)
        tick(self);
      promise.deliver(ack{});
    },
    [promise](caf::error& cause) mutable { promise.deliver(std::move(cause)); });
}

/// A closed job starts anew: its former sandboxes end, if they have not, and are forgotten, so that
/// their idempotency keys name nothing any more.
caf::result<ack> reopen(self_pointer self) {
  auto promise = self->make_response_promise<ack>();
  auto id = self->state.record.id;
  self->state.placed.clear();
  auto nothing = [](ack&, const ack&) {
  };
  std::function<void(caf::error)> failed = [promise](caf::error cause) mutable {
    promise.deliver(std::move(cause));
  };
  auto forgotten = [self, promise](ack) {
    start_anew(self, promise);
  };
  auto ended = [self, id, forgotten, failed, nothing](ack) {
    ask_nodes<ack, ack>(self, forget_job{id}, forgotten, failed, nothing);
  };
  ask_nodes<ack, ack>(self, close_job{id}, ended, failed, nothing);
  return promise;
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
  auto promise = self->make_response_promise<ack>();
  start_anew(self, promise);
  return promise;
}

} // namespace

namespace job_parts {

void persist(self_pointer self, std::function<void()> done,
             std::function<void(caf::error&)> failed) {
  auto batch = std::make_shared<write_batch>();
  batch->jobs.push_back(self->state.record);
  self->request(self->state.services.journal, caf::infinite, write_batch_ptr{batch})
    .then([done = std::move(done)](ack) { done(); },
          [failed = std::move(failed)](caf::error& cause) { failed(cause); });
}

} // namespace job_parts

job_inside::behavior_type
job(self_pointer self, job_record record, job_services services, std::vector<join_node> nodes) {
  auto& data = self->state;
  data.record = std::move(record);
  data.next_index = data.record.next_index;
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
      auto promise = self->make_response_promise<inventory_ptr>();
      auto sum = std::make_shared<inventory>();
      ask_nodes<inventory_ptr, inventory_ptr>(
        self, inventory_query{self->state.record.id, x.with_ended}, promise,
        [sum](inventory_ptr&, const inventory_ptr& part) {
          sum->sandboxes.insert(sum->sandboxes.end(), part->sandboxes.begin(),
                                part->sandboxes.end());
        },
        inventory_ptr{sum});
      return promise;
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
