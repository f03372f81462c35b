#include "actors/errors.hpp"
#include "actors/node_parts.hpp"

#include <utility>

namespace dsec::node_parts {

namespace {

/// Now, or once all creations of the job that came before are durable.
void when_created(self_pointer self, const job_id& job, std::function<void()> verb) {
  auto& x = self->state.jobs[job];
  if (x.creating > 0)
    x.deferred.push_back(std::move(verb));
  else
    verb();
}

std::vector<sandbox_inside> members(const node_data& data, const job_id& job) {
  std::vector<sandbox_inside> all;
  auto at = data.jobs.find(job);
  if (at == data.jobs.end())
    return all;
  for (const auto& id : at->second.live)
    if (const auto& actor = data.sandboxes.at(id).actor)
      all.push_back(actor);
  return all;
}

struct preempting {
  preempt_report report;
  std::size_t open = 0;
  caf::typed_response_promise<preempt_report> promise;

  void answered() {
    if (--open == 0)
      promise.deliver(report);
  }
};

struct asking_all {
  std::optional<error> failure;
  std::size_t open = 0;
  caf::typed_response_promise<ack> promise;

  void answered() {
    if (--open > 0)
      return;
    if (failure)
      promise.deliver(to_caf(*failure));
    else
      promise.deliver(ack{});
  }
};

/// One that has ended, or was overtaken by a later verb, keeps nobody from having done their part.
template <class Request>
void ask_all(self_pointer self, const job_id& job, Request request,
             caf::typed_response_promise<ack> promise) {
  auto all = std::make_shared<asking_all>();
  auto asked = members(self->state, job);
  all->open = asked.size() + 1;
  all->promise = std::move(promise);
  for (const auto& x : asked)
    self->request(x, caf::infinite, request)
      .then([all](ack) { all->answered(); },
            [all](caf::error& cause) {
              auto why = from_caf(cause, "the sandbox");
              if (why.code != errc::invalid_state && !all->failure)
                all->failure = std::move(why);
              all->answered();
            });
  all->answered();
}

} // namespace

caf::result<preempt_report> preempt(self_pointer self, const preempt_request& x) {
  auto promise = self->make_response_promise<preempt_report>();
  when_created(self, x.job, [self, x, promise] {
    auto all = std::make_shared<preempting>();
    auto asked = members(self->state, x.job);
    all->report.sandboxes = asked.size();
    all->open = asked.size() + 1;
    all->promise = promise;
    for (const auto& sandbox : asked)
      self
        ->request(sandbox, caf::infinite, pause_request{true, x.mode == preempt_mode::until_resume})
        .then(
          [all](const reclaim_report& done) {
            ++all->report.reclaimed;
            all->report.before_bytes += done.before_bytes;
            all->report.after_bytes += done.after_bytes;
            all->answered();
          },
          [all](caf::error& cause) {
            all->report.failed += from_caf(cause, "the sandbox").code != errc::invalid_state;
            all->answered();
          });
    all->answered();
  });
  return promise;
}

caf::result<ack> resume_all(self_pointer self, const job_id& job) {
  auto promise = self->make_response_promise<ack>();
  when_created(self, job, [=] { ask_all(self, job, resume_request{}, promise); });
  return promise;
}

caf::result<ack> stop_all(self_pointer self, const job_id& job) {
  auto promise = self->make_response_promise<ack>();
  when_created(self, job, [=] { ask_all(self, job, stop_request{}, promise); });
  return promise;
}

void renew(self_pointer self, const renew_job& x) {
  const auto& data = self->state;
  auto at = data.jobs.find(x.job);
  if (at == data.jobs.end() || at->second.live.empty())
    return;
  data.services.kernel.renew({at->second.live.begin(), at->second.live.end()}, x.lease);
}

} // namespace dsec::node_parts
