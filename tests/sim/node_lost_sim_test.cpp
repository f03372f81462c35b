#define BOOST_TEST_MODULE sim_node_lost

#include "actors/cluster.hpp"
#include "actors/errors.hpp"
#include "actors/journal.hpp"
#include "actors/node_link.hpp"
#include "actors/plane_parts.hpp"
#include "actors/simulation.hpp"
#include "backends/sim/sim_backend.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t nodes = 8;
constexpr std::size_t sandboxes = 16;

/// A machine with its store, and the node process that runs on it at the moment.
struct one_node {
  one_node(sim_time& time, std::uint64_t seed) : machine{time, seed} {}

  sim_world machine;
  std::unique_ptr<store> durable = make_memory_store();
  std::vector<std::unique_ptr<sim_backend>> kernels;
  journal_actor journal;
  node_actor node;
  std::vector<node_link_actor> links;
  node_id id;
};

/// A gateway and eight nodes, each of which can die and come back.
struct eight_nodes {
  eight_nodes() {
    spdlog::set_level(spdlog::level::off);
    gateway_journal = run.system().spawn(journal, gateway_store.get());
    gateway =
      run.system().spawn(cluster, std::vector<job_record>{}, gateway_journal, run.wall_offset_ms());
    for (std::size_t i = 0; i < nodes; ++i) {
      all.push_back(std::make_unique<one_node>(time, i + 1));
      begin(i);
    }
    run.settle();
  }

  ~eight_nodes() {
    run.forget_timers();
    for (std::size_t i = 0; i < nodes; ++i) {
      kill(i);
      for (const auto& link : all[i]->links)
        caf::anon_send_exit(link, caf::exit_reason::kill);
      all[i]->links.clear();
      all[i]->node = nullptr;
      all[i]->journal = nullptr;
    }
    caf::anon_send_exit(gateway_journal, caf::exit_reason::kill);
    caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
    run.settle();
  }

  void begin(std::size_t i) {
    auto& x = *all[i];
    auto& system = run.system();
    plane_options options;
    options.node_number = static_cast<std::uint32_t>(0x1000 + i);
    options.boot_id = "simulated";
    options.wall_offset_ms = run.wall_offset_ms();
    auto seed = load_seed(*x.durable, options);
    BOOST_REQUIRE(seed);
    BOOST_REQUIRE(x.durable->commit({opening_write(*seed)}));
    x.kernels.push_back(std::make_unique<sim_backend>(
      x.machine, backend_events{[&x](const sandbox_id& id, const sandbox_end& end) {
        deliver_ended({{}, {}, x.node, {}}, id, end);
      }}));
    x.id = seed->node.meta.node;
    x.journal = system.spawn(journal, x.durable.get());
    x.node = system.spawn(node, std::move(seed->node),
                          node_services{x.journal, effects{*x.kernels.back()}}, options);
    x.links.push_back(system.spawn(node_link, x.node, link_latency{}, i + 100));
    caf::anon_send(gateway, join_node{x.id, x.links.back()});
  }

  void kill(std::size_t i) {
    auto& x = *all[i];
    x.kernels.back()->disconnect();
    caf::anon_send_exit(x.journal, caf::exit_reason::kill);
    caf::anon_send_exit(x.node, caf::exit_reason::user_shutdown);
  }

  template <class T, class Handle, class Message>
  answer<T> send(const Handle& to, Message message) {
    auto kept = std::make_shared<std::optional<result<T>>>();
    run.system().spawn([=](caf::event_based_actor* self) {
      self->request(to, caf::infinite, message)
        .then([kept](const T& x) { *kept = x; },
              [kept](caf::error& cause) { *kept = from_caf(cause, "the actor"); });
    });
    return kept;
  }

  template <class T, class Handle, class Message>
  T ask(const Handle& to, Message message) {
    return get(send<T>(to, std::move(message)));
  }

  template <class T>
  T get(const answer<T>& x) {
    for (int i = 0; i < 10'000 && !*x; ++i)
      run.advance(10ms);
    BOOST_TEST_REQUIRE(x->has_value());
    BOOST_TEST_REQUIRE(bool(**x), (**x ? "" : (**x).error().message));
    return ***x;
  }

  sandbox_actor find(const sandbox_id& id) {
    return ask<find_reply>(gateway, find_sandbox{id}).actor;
  }

  sim_time time;
  std::unique_ptr<store> gateway_store = make_memory_store();
  std::vector<std::unique_ptr<one_node>> all;
  simulation run{time, 1};
  journal_actor gateway_journal;
  cluster_actor gateway;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(what_ran_on_a_node_that_died_is_lost_with_it_and_a_step_is_asked_again,
                        eight_nodes) {
  auto job = ask<job_actor>(gateway, open_job{job_id{"train"}, {0ms, 0ms}});
  create_batch batch;
  for (std::size_t i = 0; i < sandboxes; ++i)
    batch.items.push_back({{}, small_environment()});
  auto made = ask<create_reply_ptr>(job, batch);

  struct use {
    sandbox_id id;
    answer<exec_result_ptr> plain, step;
  };

  std::map<node_id, std::vector<use>> on;
  for (const auto& id : made->sandboxes) {
    BOOST_REQUIRE(id);
    auto actor = find(*id);
    ask<ack>(actor, await_running{});
    on[*node_of(*id)].push_back({*id, send<exec_result_ptr>(actor, command({"think-ms", "5000"})),
                                 send<exec_result_ptr>(actor, command({"think-ms", "5000"}, 1))});
  }
  BOOST_TEST_REQUIRE(on.size() == nodes);
  run.advance(1s);

  const auto& lost = on.at(all[3]->id);
  BOOST_TEST_REQUIRE(!lost.empty());
  kill(3);
  run.advance(100ms);
  for (const auto& x : lost) {
    BOOST_TEST_REQUIRE(x.plain->has_value());
    BOOST_TEST_REQUIRE(bool(**x.plain));
    const auto& outcome = (**x.plain)->get()->outcome;
    BOOST_TEST(outcome.kind == outcome_kind::node_lost);
    BOOST_TEST(outcome.cause == "the node process that ran it has ended");
    // Of a step somebody will know.
    BOOST_TEST_REQUIRE(x.step->has_value());
    BOOST_TEST_REQUIRE(!**x.step);
    BOOST_TEST((**x.step).error().code == errc::unavailable);
  }
  begin(3);
  for (const auto& x : lost) {
    auto again = ask<exec_result_ptr>(find(x.id), command({"think-ms", "5000"}, 1));
    BOOST_TEST(again->outcome.kind == outcome_kind::exited);
    BOOST_TEST((all[3]->machine.truth().begun.at({x.id, 1}) == 1u));
  }
  // Nobody else noticed.
  for (const auto& [node, uses] : on)
    for (const auto& x : uses)
      if (node != all[3]->id) {
        BOOST_TEST(get(x.plain)->outcome.kind == outcome_kind::exited);
        BOOST_TEST(get(x.step)->outcome.kind == outcome_kind::exited);
      }
}
