#include "tests/support/actor_fixture.hpp"

#include "actors/cluster.hpp"
#include "actors/journal.hpp"
#include "actors/plane_parts.hpp"
#include "state/forwarding_store.hpp"

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

class telling_store final : public forwarding_store {
public:
  telling_store(std::unique_ptr<store> inner, machine_fixture& told)
    : forwarding_store{std::move(inner)},
      told_{told} {}

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    auto done = forwarding_store::commit(batches);
    if (done)
      for (const auto& batch : batches)
        for (const auto& record : batch->sandboxes)
          told_.changed(record);
    return done;
  }

private:
  machine_fixture& told_;
};

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
  : kernel_{machine, {[this](const sandbox_id& id, const sandbox_end& end) {
              deliver_ended(plane_, id, end);
            }}},
    run_{time, seed} {
  spdlog::set_level(spdlog::level::off);
  auto& system = run_.system();
  asker_ = system.spawn(asker, 0);
  options.wall_offset_ms = run_.wall_offset_ms();
  options.node_number = 0xd5ec;
  auto loaded = load_seed(durable, options);
  require(loaded);
  BOOST_REQUIRE(durable.commit({opening_write(*loaded)}));
  plane_.node = loaded->node.meta.node;
  plane_.journal = system.spawn(journal, &durable);
  plane_.node_handle = system.spawn(node, std::move(loaded->node),
                                    node_services{plane_.journal, effects{kernel_}}, options);
  plane_.cluster =
    system.spawn(cluster, std::move(loaded->jobs), plane_.journal, options.wall_offset_ms);
  caf::anon_send(plane_.cluster, join_node{plane_.node, plane_.node_handle});
}

process::~process() {
  kernel_.disconnect();
  run_.forget_timers();
  // Urgent messages, the journal's first: what it has not written by now is lost.
  caf::anon_send_exit(plane_.journal, caf::exit_reason::kill);
  caf::anon_send_exit(asker_, caf::exit_reason::kill);
  caf::anon_send_exit(plane_.cluster, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(plane_.node_handle, caf::exit_reason::user_shutdown);
}

void process::call(asker_call x) {
  caf::anon_send(asker_, asker_message{std::make_shared<const asker_call>(std::move(x))});
}

machine_fixture::machine_fixture(std::uint64_t seed_of_all, sim_costs costs)
  : seed{seed_of_all},
    machine{time, seed_of_all, costs} {
  options.boot_id = "boot-1";
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

std::unique_ptr<store> machine_fixture::telling(std::unique_ptr<store> inner) {
  return std::make_unique<telling_store>(std::move(inner), *this);
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
