#include "actors/trainer.hpp"

#include "actors/errors.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace dsec {

namespace {

using self_pointer = trainer_actor::stateful_pointer<trainer_data>;
using namespace std::chrono_literals;

/// After an error that may pass.
constexpr auto patience = 1s;

std::chrono::milliseconds
between(sim_random& random, std::chrono::milliseconds least, std::chrono::milliseconds most) {
  auto spread = static_cast<std::uint64_t>((most - least).count());
  return least + std::chrono::milliseconds{random.below(spread + 1)};
}

void turn_after(self_pointer self, std::uint64_t agent, std::chrono::milliseconds delay) {
  self->delayed_send(self, delay, agent_turn{agent, ++self->state.agents[agent].turn});
}

/// Whether an answer still belongs to the agent's present turn: its sandbox may have died
/// meanwhile.
bool present(self_pointer self, std::uint64_t agent, std::uint64_t number) {
  return self->state.agents[agent].turn == number;
}

void finish(self_pointer self) {
  auto& data = self->state;
  const auto& report = *data.report;
  if (report.finished + report.failed < data.agents.size())
    return;
  self->request(data.job, caf::infinite, stop_request{})
    .then([self](ack) { self->state.report->done = true; },
          [self](caf::error&) { self->state.report->done = true; });
}

void agent_ended(self_pointer self, std::uint64_t agent, std::uint64_t& counter) {
  auto& x = self->state.agents[agent];
  if (std::exchange(x.ended, true))
    return;
  ++counter;
  self->state.by_actor.erase(x.sandbox.address());
  x.sandbox = nullptr;
  finish(self);
}

/// The node may be away: it is asked until it says something.
void look_up(self_pointer self, std::uint64_t agent) {
  auto& data = self->state;
  self->request(data.cluster, caf::infinite, find_sandbox{data.agents[agent].id})
    .then(
      [self, agent](const find_reply& found) {
        auto& now = self->state;
        if (!found.actor)
          return agent_ended(self, agent, now.report->failed);
        now.agents[agent].sandbox = found.actor;
        now.by_actor[found.actor.address()] = agent;
        self->monitor(found.actor);
        turn_after(self, agent, 0ms);
      },
      [self, agent](caf::error&) { turn_after(self, agent, patience); });
}

void act(self_pointer self, std::uint64_t agent) {
  auto& data = self->state;
  auto& x = data.agents[agent];
  exec_spec spec;
  // The same step is the same request, whenever it is sent.
  sim_random chance{agent * 7919 + x.step};
  auto time = between(chance, data.plan.act_least, data.plan.act_most);
  spec.argv = {"think-ms", std::to_string(time.count())};
  spec.step = x.step;
  data.report->replayed += std::exchange(x.sent, true);
  exec_message message{std::make_shared<const exec_spec>(std::move(spec)), nullptr, 0};
  self->request(x.sandbox, caf::infinite, std::move(message))
    .then(
      [self, agent, number = x.turn](const exec_result_ptr& done) {
        auto& now = self->state;
        if (!present(self, agent, number))
          return;
        if (!done->ok())
          return agent_ended(self, agent, now.report->failed);
        ++now.report->steps;
        ++now.agents[agent].step;
        now.agents[agent].sent = false;
        turn_after(self, agent, between(now.random, now.plan.think_least, now.plan.think_most));
      },
      [self, agent, number = x.turn](caf::error& cause) {
        auto& now = self->state;
        if (!present(self, agent, number))
          return;
        if (from_caf(cause, "the sandbox").code == errc::preempted) {
          ++now.report->preempted;
          now.agents[agent].sent = false;
        }
        turn_after(self, agent, patience);
      });
}

void turn(self_pointer self, std::uint64_t agent, std::uint64_t number) {
  auto& data = self->state;
  auto& x = data.agents[agent];
  if (x.ended || x.turn != number)
    return;
  if (!x.sandbox)
    return look_up(self, agent);
  if (x.step < data.plan.steps)
    return act(self, agent);
  self->request(x.sandbox, caf::infinite, stop_request{})
    .then([self, agent](ack) { agent_ended(self, agent, self->state.report->finished); },
          [self, agent, number = x.turn](caf::error&) {
            if (present(self, agent, number))
              turn_after(self, agent, patience);
          });
}

void create(self_pointer self) {
  auto& data = self->state;
  create_batch batch;
  for (std::uint64_t i = 0; i < data.plan.sandboxes; ++i)
    batch.items.push_back({fmt::format("agent-{}", i), data.environment});
  self->request(data.job, caf::infinite, std::move(batch))
    .then(
      [self](const create_reply_ptr& reply) {
        auto& now = self->state;
        for (const auto& x : reply->sandboxes) {
          auto agent = now.agents.size();
          now.agents.push_back({});
          if (x)
            now.agents.back().id = *x;
          else
            now.agents.back().ended = true;
          if (x)
            turn_after(self, agent, between(now.random, now.plan.think_least, now.plan.think_most));
          else
            ++now.report->failed;
        }
        finish(self);
      },
      [self](caf::error&) { self->state.report->done = true; });
}

void begin(self_pointer self) {
  auto& data = self->state;
  self->request(data.cluster, caf::infinite, open_job{data.plan.name, data.lease})
    .then(
      [self](const job_actor& job) {
        auto& now = self->state;
        now.job = job;
        create(self);
        for (std::size_t i = 0; i < now.plan.preemptions.size(); ++i)
          self->delayed_send(self, now.plan.preemptions[i].at, begin_preemption{i});
      },
      [self](caf::error&) { self->state.report->done = true; });
}

void preempt(self_pointer self, const scenario_preemption& x) {
  self->request(self->state.job, caf::infinite, preempt_job{x.mode})
    .then([](const preempt_report&) {}, [](caf::error&) {});
  self->delayed_send(self, x.lasts, end_preemption{});
}

void resume(self_pointer self) {
  self->request(self->state.job, caf::infinite, resume_request{})
    .then([](ack) {}, [](caf::error&) {});
}

} // namespace

trainer_actor::behavior_type trainer(self_pointer self, scenario_job plan, lease_terms lease,
                                     cluster_actor cluster, std::uint64_t seed,
                                     training_report* report) {
  auto& data = self->state;
  data.plan = std::move(plan);
  data.lease = lease;
  data.cluster = std::move(cluster);
  data.random = sim_random{seed};
  data.report = report;
  data.environment.layers.push_back(layer_digest{"sha256-" + std::string(64, '0')});
  self->set_down_handler([self](caf::down_msg& x) {
    auto at = self->state.by_actor.extract(x.source);
    if (at.empty())
      return;
    // Its node died. Whether the step ran is for the sandbox's next life to say.
    self->state.agents[at.mapped()].sandbox = nullptr;
    turn_after(self, at.mapped(), patience);
  });
  self->delayed_send(self, data.plan.at, begin_training{});
  return {
    [self](const begin_training&) { begin(self); },
    [self](const agent_turn& x) { turn(self, x.agent, x.number); },
    [self](const begin_preemption& x) { preempt(self, self->state.plan.preemptions[x.which]); },
    [self](const end_preemption&) { resume(self); },
  };
}

} // namespace dsec
