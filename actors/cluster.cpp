#include "actors/cluster.hpp"

#include "actors/errors.hpp"
#include "actors/gather.hpp"
#include "actors/placement.hpp"
#include "actors/supervision.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace dsec {

namespace {

using self_pointer = cluster_actor::stateful_pointer<cluster_data>;

std::vector<join_node> nodes_of(const cluster_data& data) {
  std::vector<join_node> all;
  for (const auto& [id, actor] : data.nodes)
    all.push_back({id, actor});
  return all;
}

const job_inside& spawn_job(self_pointer self, job_record record) {
  auto& data = self->state;
  auto& entry = data.jobs[record.id];
  ++entry.lives;
  entry.down.reset();
  entry.actor = self->spawn<caf::monitored>(job, std::move(record), data.services, nodes_of(data));
  return entry.actor;
}

void send_to_jobs(self_pointer self, const nodes_changed& x) {
  for (const auto& [id, entry] : self->state.jobs)
    if (entry.actor)
      self->send(entry.actor, x);
}

/// Starts a job's actor anew from what is durable.
void revive(self_pointer self, const job_id& id) {
  self->request(self->state.services.journal, caf::infinite, load_job{id})
    .then([self](const job_record& found) { spawn_job(self, found); },
          [self, id](caf::error& cause) {
            auto why = from_caf(cause, "the journal");
            if (why.code == errc::not_found) // It died before it was.
              self->state.jobs.erase(id);
            else
              self->state.jobs.at(id).down = std::move(why);
          });
}

void on_down(self_pointer self, const caf::down_msg& x) {
  for (auto& [id, entry] : self->state.jobs) {
    if (!entry.actor || entry.actor.address() != x.source)
      continue;
    entry.actor = nullptr;
    auto name = fmt::format("job {}", id);
    if (entry.lives >= lives_max) {
      entry.down = abandoned_error(name, x.reason);
      spdlog::critical("job.abandoned {}", entry.down->message);
      return;
    }
    entry.down = restarting_error(name);
    spdlog::error("job.restarted {}: its actor died of {}", name, to_string(x.reason));
    return revive(self, id);
  }
}

void join(self_pointer self, const join_node& x) {
  auto& data = self->state;
  data.nodes[x.id] = x.node;
  nodes_changed now{nodes_of(data)};
  self->send(data.services.placement, now);
  send_to_jobs(self, now);
  spdlog::info("node.joined node {}", x.id);
}

caf::result<job_actor> open(self_pointer self, const open_job& x) {
  auto& data = self->state;
  if (auto ok = validate(x.job); !ok)
    return to_caf(ok.error());
  if (x.lease.pause_after.count() < 0 || x.lease.stop_after.count() < 0
      || (x.lease.stop_after.count() > 0 && x.lease.stop_after < x.lease.pause_after))
    return to_caf({errc::invalid_argument,
                   fmt::format("open job {}: lease.stop_after {} ms must not be before "
                               "lease.pause_after {} ms, neither negative",
                               x.job, x.lease.stop_after.count(), x.lease.pause_after.count())});
  auto known = data.jobs.find(x.job);
  if (known != data.jobs.end() && known->second.down)
    return to_caf(*known->second.down);
  job_record fresh;
  fresh.id = x.job;
  auto actor = known != data.jobs.end() ? known->second.actor : spawn_job(self, std::move(fresh));
  auto answer = self->state.owed.owe<job_actor>(self);
  self->request(actor, caf::infinite, x)
    .then([answer, actor](ack) { answer.deliver(job_actor{actor}); },
          [answer, id = x.job](caf::error& cause) {
            answer.deliver(to_caf(from_caf(cause, fmt::format("job {}", id))));
          });
  return answer;
}

caf::result<job_actor> find_known(const cluster_data& data, const job_id& id) {
  auto known = data.jobs.find(id);
  if (known == data.jobs.end())
    return to_caf({errc::not_found, fmt::format("find job {}: there is none of that name", id)});
  if (known->second.down)
    return to_caf(*known->second.down);
  return job_actor{known->second.actor};
}

caf::result<inventory_ptr> inventory_of_all(self_pointer self, const inventory_query& x) {
  auto answer = self->state.owed.owe<inventory_ptr>(self);
  auto deliver = [answer](auto all) {
    answer.deliver(std::move(all));
  };
  inventory_of_nodes(self, nodes_of(self->state), x, deliver, deliver);
  return answer;
}

caf::result<find_reply> find(self_pointer self, const find_sandbox& x) {
  auto home = node_of(x.id);
  if (!home)
    return to_caf(home.error());
  auto node = self->state.nodes.find(*home);
  if (node == self->state.nodes.end())
    return to_caf(
      {errc::not_found, fmt::format("find sandbox {}: no node {} has joined", x.id, *home)});
  return self->delegate(node->second, x);
}

} // namespace

cluster_actor::behavior_type cluster(self_pointer self, std::vector<job_record> jobs,
                                     journal_actor journal, std::int64_t wall_offset_ms) {
  auto& data = self->state;
  data.owed.debtor = "the cluster";
  data.services = {std::move(journal), self->spawn(placement, std::vector<join_node>{}),
                   wall_offset_ms};
  for (auto& x : jobs)
    spawn_job(self, std::move(x));
  self->set_down_handler([self](caf::down_msg& x) { on_down(self, x); });
  self->set_exit_handler([self](caf::exit_msg& x) {
    for (const auto& [id, entry] : self->state.jobs)
      if (entry.actor)
        caf::anon_send_exit(entry.actor, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(self->state.services.placement, caf::exit_reason::user_shutdown);
    self->quit(std::move(x.reason));
  });
  return {
    [self](const join_node& x) { join(self, x); },
    [self](const open_job& x) { return open(self, x); },
    [self](const find_job& x) { return find_known(self->state, x.job); },
    [self](const inventory_query& x) { return inventory_of_all(self, x); },
    [self](const find_sandbox& x) { return find(self, x); },
  };
}

} // namespace dsec
