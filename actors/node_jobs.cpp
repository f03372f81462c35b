#include "actors/errors.hpp"
#include "actors/gather.hpp"
#include "actors/node_parts.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

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

/// The live sandboxes of a job: the actors, and what those say that have none any more.
struct members {
  std::vector<sandbox_inside> actors;
  std::vector<error> down;
};

members members_of(const node_data& data, const job_id& job) {
  members all;
  auto at = data.jobs.find(job);
  if (at == data.jobs.end())
    return all;
  for (const auto& id : at->second.live) {
    const auto& entry = data.sandboxes.at(id);
    if (entry.actor)
      all.actors.push_back(entry.actor);
    else if (entry.down)
      all.down.push_back(*entry.down);
  }
  return all;
}

/// One that has ended, or was overtaken by a later verb, keeps nobody from having done their part.
std::optional<error> shortfall(const caf::error& cause) {
  auto why = from_caf(cause, "the sandbox");
  return why.code == errc::invalid_state ? std::nullopt : std::optional{std::move(why)};
}

template <class Request>
void ask_all(self_pointer self, const job_id& job, const Request& request,
             open_answers::answer<ack> answer) {
  auto asked = members_of(self->state, job);
  std::optional<error> failure;
  if (!asked.down.empty())
    failure = std::move(asked.down.front());
  gather<ack>(
    self, asked.actors, request, std::move(failure), [](std::optional<error>&, const ack&) {},
    [](std::optional<error>& sum, caf::error& cause) {
      if (auto why = shortfall(cause); why && !sum)
        sum = std::move(why);
    },
    std::function<void(std::optional<error>)>{[answer](const std::optional<error>& sum) {
      if (sum)
        answer.deliver(to_caf(*sum));
      else
        answer.deliver(ack{});
    }});
}

} // namespace

caf::result<preempt_report> preempt(self_pointer self, const preempt_request& x) {
  auto answer = self->state.owed.owe<preempt_report>(self);
  when_created(self, x.job, [self, x, answer] {
    auto asked = members_of(self->state, x.job);
    preempt_report begun;
    begun.failed = asked.down.size();
    begun.sandboxes = asked.actors.size() + begun.failed;
    gather<reclaim_report>(
      self, asked.actors, pause_request{true, x.mode == preempt_mode::until_resume}, begun,
      [](preempt_report& sum, const reclaim_report& done) {
        ++sum.reclaimed;
        sum.before_bytes += done.before_bytes;
        sum.after_bytes += done.after_bytes;
      },
      [](preempt_report& sum, caf::error& cause) { sum.failed += shortfall(cause).has_value(); },
      std::function<void(preempt_report)>{[answer](preempt_report sum) {
        answer.deliver(std::move(sum));
      }});
  });
  return answer;
}

caf::result<ack> resume_all(self_pointer self, const job_id& job) {
  auto answer = self->state.owed.owe<ack>(self);
  when_created(self, job, [=] { ask_all(self, job, resume_request{}, answer); });
  return answer;
}

caf::result<ack> stop_all(self_pointer self, const job_id& job) {
  auto answer = self->state.owed.owe<ack>(self);
  when_created(self, job, [=] { ask_all(self, job, stop_request{}, answer); });
  return answer;
}

void renew(self_pointer self, const renew_job& x) {
  const auto& data = self->state;
  auto at = data.jobs.find(x.job);
  if (at == data.jobs.end() || at->second.live.empty())
    return;
  data.services.kernel.renew({at->second.live.begin(), at->second.live.end()}, x.lease);
}

} // namespace dsec::node_parts
