#include "actors/replay.hpp"

#include "actors/cluster.hpp"
#include "actors/journal.hpp"
#include "actors/node_link.hpp"
#include "actors/plane_parts.hpp"
#include "actors/simulation.hpp"
#include "actors/trainer.hpp"
#include "backends/sim/sim_backend.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace dsec {

namespace {

/// One machine with its store, and the node process that runs on it at the moment.
struct replay_node {
  replay_node(sim_time& time, std::uint64_t seed) : machine{time, seed} {}

  sim_world machine;
  std::unique_ptr<store> durable = make_memory_store();
  std::unique_ptr<sim_backend> kernel;
  journal_actor journal;
  node_actor node;
  /// One for each life: an older one still answers that its node has died.
  std::vector<node_link_actor> links;
};

class replay_run {
public:
  replay_run(const scenario& plan, const replay_options& options)
    : plan_{plan},
      seed_{options.seed},
      run_{std::make_unique<simulation>(time_, options.seed)} {
    run_->hash_into(&hash_);
    run_->flip_at(options.flip);
    gateway_journal_ = run_->system().spawn(journal, gateway_store_.get());
    cluster_ = run_->system().spawn(cluster, std::vector<job_record>{}, gateway_journal_,
                                    run_->wall_offset_ms());
    for (std::size_t i = 0; i < plan.nodes; ++i) {
      nodes_.push_back(std::make_unique<replay_node>(time_, seed_ * 1'000 + i));
      begin_node(i);
    }
    for (const auto& death : plan.deaths) {
      time_.after(death.at, [this, death] { end_node(death.node); });
      time_.after(death.at + death.back_after, [this, death] { begin_node(death.node); });
    }
    reports_.resize(plan.jobs.size());
    for (std::size_t i = 0; i < plan.jobs.size(); ++i)
      trainers_.push_back(run_->system().spawn(trainer, plan.jobs[i], plan.lease, cluster_,
                                               seed_ * 7'919 + i, &reports_[i]));
  }

  ~replay_run() {
    run_->forget_timers();
    run_->hash_into(nullptr);
    for (const auto& x : trainers_)
      caf::anon_send_exit(x, caf::exit_reason::kill);
    caf::anon_send_exit(gateway_journal_, caf::exit_reason::kill);
    caf::anon_send_exit(cluster_, caf::exit_reason::user_shutdown);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      end_node(i);
      for (const auto& link : nodes_[i]->links)
        caf::anon_send_exit(link, caf::exit_reason::kill);
      nodes_[i]->links.clear();
      nodes_[i]->node = nullptr;
      nodes_[i]->journal = nullptr;
    }
    trainers_.clear();
    gateway_journal_ = nullptr;
    cluster_ = nullptr;
    run_.reset();
  }

  replay_report finish() {
    auto began = std::chrono::steady_clock::now();
    while (!done() && time_.now() < plan_.limit && run_->next()) {
    }
    replay_report x;
    x.complete = done();
    x.hash = hash_.value();
    x.messages = run_->delivered();
    x.virtual_s = std::chrono::duration<double>(time_.now()).count();
    x.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    for (const auto& job : plan_.jobs)
      x.sandboxes += job.sandboxes;
    for (const auto& report : reports_) {
      x.finished += report.finished;
      x.failed += report.failed;
      x.steps += report.steps;
      x.resent_steps += report.replayed;
      x.preempted_requests += report.preempted;
    }
    for (const auto& node : nodes_) {
      x.left_behind += node->machine.alive().size();
      for (const auto& [exec, times] : node->machine.truth().begun)
        x.duplicated_execs += times > 1;
    }
    return x;
  }

private:
  bool done() const {
    return std::ranges::all_of(reports_, &training_report::done);
  }

  void begin_node(std::size_t i) {
    auto& x = *nodes_[i];
    auto& system = run_->system();
    plane_options options;
    options.capacity = plan_.capacity;
    options.node_number = static_cast<std::uint32_t>(0x1000 + i);
    options.boot_id = "simulated";
    options.wall_offset_ms = run_->wall_offset_ms();
    auto seed = load_seed(*x.durable, options);
    auto opened = x.durable->commit({opening_write(*seed)});
    if (!opened)
      return;
    // What an ended life still has to say is for nobody.
    dead_kernels_.push_back(std::move(x.kernel));
    x.kernel = std::make_unique<sim_backend>(
      x.machine, backend_events{[&x](const sandbox_id& id, const sandbox_end& end) {
        deliver_ended({{}, {}, x.node, {}}, id, end);
      }});
    auto id = seed->node.meta.node;
    x.journal = system.spawn(journal, x.durable.get());
    x.node = system.spawn(node, std::move(seed->node), node_services{x.journal, effects{*x.kernel}},
                          options);
    x.links.push_back(system.spawn(node_link, x.node, link_latency{}, seed_ * 31 + lives_++));
    caf::anon_send(cluster_, join_node{id, x.links.back()});
  }

  void end_node(std::size_t i) {
    auto& x = *nodes_[i];
    x.kernel->disconnect();
    caf::anon_send_exit(x.journal, caf::exit_reason::kill);
    caf::anon_send_exit(x.node, caf::exit_reason::user_shutdown);
  }

  const scenario& plan_;
  std::uint64_t seed_;
  sim_time time_;
  event_hash hash_;
  std::unique_ptr<store> gateway_store_ = make_memory_store();
  std::vector<training_report> reports_;
  std::vector<std::unique_ptr<replay_node>> nodes_;
  std::vector<std::unique_ptr<sim_backend>> dead_kernels_;
  std::unique_ptr<simulation> run_;
  journal_actor gateway_journal_;
  cluster_actor cluster_;
  std::vector<trainer_actor> trainers_;
  std::uint64_t lives_ = 0;
};

} // namespace

replay_report replay(const scenario& plan, const replay_options& options) {
  return replay_run{plan, options}.finish();
}

} // namespace dsec
