#include "actors/cluster.hpp"

#include "actors/errors.hpp"
#include "actors/placement.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
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
  auto id = record.id;
  auto& x = data.jobs[id];
  x = self->spawn<caf::monitored>(job, std::move(record), data.services, nodes_of(data));
  return x;
}

void join(self_pointer self, const join_node& x) {
  auto& data = self->state;
  data.nodes[x.id] = x.node;
  nodes_changed now{nodes_of(data)};
  self->send(data.services.placement, now);
  for (const auto& [id, actor] : data.jobs)
    self->send(actor, now);
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
  job_record fresh;
  fresh.id = x.job;
  auto actor = known != data.jobs.end() ? known->second : spawn_job(self, std::move(fresh));
  auto promise = self->make_response_promise<job_actor>();
  self->request(actor, caf::infinite, x)
    .then([promise, actor](ack) mutable { promise.deliver(job_actor{actor}); },
          [promise](caf::error& cause) mutable { promise.deliver(std::move(cause)); });
  return promise;
}

caf::result<job_actor> find_known(const cluster_data& data, const job_id& id) {
  auto known = data.jobs.find(id);
  if (known == data.jobs.end())
    return to_caf({errc::not_found, fmt::format("find job {}: there is none of that name", id)});
  return job_actor{known->second};
}

caf::result<inventory_ptr> inventory_of_all(self_pointer self, const inventory_query& x) {
  struct gathering {
    std::shared_ptr<inventory> sum = std::make_shared<inventory>();
    std::optional<caf::error> failure;
    std::size_t open = 0;
    caf::typed_response_promise<inventory_ptr> promise;

    void answered() {
      if (--open > 0)
        return;
      if (failure)
        promise.deliver(std::move(*failure));
      else
        promise.deliver(inventory_ptr{sum});
    }
  };

  auto all = std::make_shared<gathering>();
  all->open = self->state.nodes.size() + 1;
  all->promise = self->make_response_promise<inventory_ptr>();
  for (const auto& [id, node] : self->state.nodes)
    self->request(node, caf::infinite, x)
      .then(
        [all](const inventory_ptr& part) {
          all->sum->sandboxes.insert(all->sum->sandboxes.end(), part->sandboxes.begin(),
                                     part->sandboxes.end());
          all->answered();
        },
        [all](caf::error& cause) {
          all->failure = std::move(cause);
          all->answered();
        });
  auto promise = all->promise;
  all->answered();
  return promise;
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
  data.services = {std::move(journal), self->spawn(placement, std::vector<join_node>{}),
                   wall_offset_ms};
  for (auto& x : jobs)
    spawn_job(self, std::move(x));
  self->set_down_handler([self](caf::down_msg& x) {
    for (const auto& [id, actor] : self->state.jobs)
      if (actor.address() == x.source)
        spdlog::error("job.died job {}: its actor died of {}", id, to_string(x.reason));
  });
  self->set_exit_handler([self](caf::exit_msg& x) {
    for (const auto& [id, actor] : self->state.jobs)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
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
