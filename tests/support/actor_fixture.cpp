#include "tests/support/actor_fixture.hpp"

#include "actors/cluster.hpp"
#include "actors/journal.hpp"
#include "actors/plane_parts.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace dsec::test {

struct asker_message {
  std::shared_ptr<const asker_call> call;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, asker_message&) {
  return f(caf::meta::type_name("asker_message"));
}

} // namespace dsec::test

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::test::asker_message)

namespace dsec::test {

namespace {

template <class T>
void require(const result<T>& x) {
  BOOST_REQUIRE_MESSAGE(x, (x ? std::string{} : x.error().message));
}

caf::behavior asker(caf::event_based_actor* self, int) {
  return {[self](const asker_message& x) {
    (*x.call)(self);
  }};
}

} // namespace

process::process(sim_time& time, sim_world& machine, store& durable, std::uint64_t seed,
                 plane_options options)
  : time_{time},
    random_{seed},
    kernel_{machine, {[this](const sandbox_id& id, const sandbox_end& end) {
              deliver_ended(plane_, id, end);
            }}} {
  spdlog::set_level(spdlog::level::off);
  configure(config_, 1);
  config_.set("scheduler.policy", caf::atom("testing"));
  system_ = std::make_unique<caf::actor_system>(config_);
  scheduler_ = &dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  born_ = time_.now();
  clock_born_ = scheduler_->clock().now();
  asker_ = system_->spawn(asker, 0);
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  options.wall_offset_ms = duration_cast<milliseconds>(born_).count()
                           - duration_cast<milliseconds>(clock_born_.time_since_epoch()).count();
  options.node_number = 0xd5ec;
  auto loaded = load_seed(durable, options);
  BOOST_REQUIRE(loaded);
  BOOST_REQUIRE(durable.commit({opening_write(*loaded)}));
  plane_.node = loaded->node.meta.node;
  plane_.journal = system_->spawn(journal, &durable);
  auto wall_offset_ms = options.wall_offset_ms;
  auto served = system_->spawn(node, std::move(loaded->node),
                               node_services{plane_.journal, effects{kernel_}}, options);
  plane_.node_handle = served;
  plane_.cluster = system_->spawn(cluster, std::move(loaded->jobs), plane_.journal, wall_offset_ms);
  caf::anon_send(plane_.cluster, join_node{plane_.node, plane_.node_handle});
}

process::~process() {
  kernel_.disconnect();
  scheduler_->clock().cancel_all();
  caf::anon_send_exit(plane_.journal, caf::exit_reason::kill);
  caf::anon_send_exit(asker_, caf::exit_reason::kill);
  caf::anon_send_exit(plane_.cluster, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(plane_.node_handle, caf::exit_reason::user_shutdown);
  scheduler_->prioritize(plane_.journal);
  settle();
  scheduler_->clock().cancel_all();
  plane_ = {};
  asker_ = nullptr;
}

void process::call(asker_call x) {
  caf::anon_send(asker_, asker_message{std::make_shared<const asker_call>(std::move(x))});
}

void process::run_one() {
  auto& jobs = scheduler_->jobs;
  std::swap(jobs.front(), jobs[random_.below(jobs.size())]);
  scheduler_->try_run_once();
}

void process::settle() {
  while (scheduler_->has_job())
    run_one();
}

void process::step(std::size_t messages) {
  for (std::size_t i = 0; i < messages && scheduler_->has_job(); ++i)
    run_one();
}

void process::follow_clock() {
  auto lag = (time_.now() - born_) - (scheduler_->clock().now() - clock_born_);
  if (lag.count() > 0)
    scheduler_->advance_time(lag);
}

std::optional<sim_time::duration> process::next_due() const {
  auto due = time_.next_due();
  const auto& timers = scheduler_->clock().schedule();
  if (timers.empty())
    return due;
  auto timer = born_ + (timers.begin()->first - clock_born_);
  return due ? std::min(*due, timer) : timer;
}

void process::advance(std::chrono::nanoseconds by) {
  auto end = time_.now() + by;
  settle();
  for (auto due = next_due(); due && *due <= end; due = next_due()) {
    time_.advance_to(*due);
    follow_clock();
    settle();
  }
  time_.advance_to(end);
  follow_clock();
  settle();
}

machine_fixture::machine_fixture(std::uint64_t seed_of_all, sim_costs costs)
  : seed{seed_of_all},
    machine{time, seed_of_all, costs} {
  options.boot_id = "boot-1";
  options.on_change = [this](const sandbox_change& x) {
    changed(x);
  };
  start();
}

void machine_fixture::start() {
  now = std::make_unique<process>(time, machine, *durable, seed * 1000 + ++lives, options);
}

void machine_fixture::crash() {
  now.reset();
}

void machine_fixture::reboot() {
  crash();
  machine.power_cycle();
  options.boot_id += "1";
}

job_actor machine_fixture::open(const std::string& name, lease_terms lease) {
  auto job = now->ask<job_actor>(now->actors().cluster, open_job{job_id{name}, lease});
  require(job);
  return *job;
}

sandbox_id machine_fixture::create(const job_actor& job, std::string key) {
  auto reply =
    now->ask<create_reply_ptr>(job, create_batch{{{std::move(key), small_environment()}}});
  require(reply);
  const auto& id = (*reply)->sandboxes.front();
  require(id);
  BOOST_REQUIRE(now->ask<ack>(find(*id), await_running{}));
  return *id;
}

sandbox_actor machine_fixture::find(const sandbox_id& id) {
  auto found = now->ask<find_reply>(now->actors().cluster, find_sandbox{id});
  require(found);
  return found->actor;
}

sandbox_info machine_fixture::info(const sandbox_id& id) {
  auto found = now->ask<find_reply>(now->actors().cluster, find_sandbox{id});
  require(found);
  return found->info;
}

environment small_environment() {
  environment x;
  x.layers.push_back(layer_digest{"sha256-" + std::string(64, 'a')});
  return x;
}

exec_message
command(std::vector<std::string> argv, std::optional<std::uint64_t> step, std::uint64_t ticket) {
  exec_spec spec;
  spec.argv = std::move(argv);
  spec.step = step;
  return {std::make_shared<const exec_spec>(std::move(spec)), nullptr, ticket};
}

} // namespace dsec::test
