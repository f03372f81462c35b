#define BOOST_TEST_MODULE actors_keys

#include "actors/cluster.hpp"
#include "actors/journal.hpp"
#include "actors/plane_parts.hpp"
#include "state/forwarding_store.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

struct ask_message {
  std::shared_ptr<const asker_call> call;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ask_message&) {
  return f(caf::meta::type_name("ask_message"));
}

} // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(ask_message)

namespace {

caf::behavior ask_for(caf::event_based_actor* self, int) {
  return {[self](const ask_message& x) {
    (*x.call)(self);
  }};
}

/// Memory that tells when a sandbox is durable, before whoever wrote it is told.
class telling_store final : public forwarding_store {
public:
  telling_store() : forwarding_store{make_memory_store()} {}

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    auto done = forwarding_store::commit(batches);
    for (const auto& batch : batches)
      if (!batch->sandboxes.empty() && created)
        std::exchange(created, nullptr)();
    return done;
  }

  std::function<void()> created;
};

/// One machine, its store, and the node that runs on it.
struct member {
  explicit member(sim_time& time, std::uint64_t seed) : machine{time, seed} {}

  sim_world machine;
  std::unique_ptr<telling_store> durable = std::make_unique<telling_store>();
  std::unique_ptr<sim_backend> kernel;
  node_id id;
  journal_actor journal;
  node_actor node;
};

/// A gateway with two nodes, on the test's own thread.
struct fixture {
  fixture() {
    spdlog::set_level(spdlog::level::off);
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i] = std::make_unique<member>(time, i + 1);
      start_node(i);
    }
    journal_ = run.system().spawn(dsec::journal, gateway_store.get());
    start_gateway();
  }

  ~fixture() {
    job = nullptr;
    run.forget_timers();
    for (const auto& x : members) {
      x->kernel->disconnect();
      caf::anon_send_exit(x->journal, caf::exit_reason::kill);
      caf::anon_send_exit(x->node, caf::exit_reason::user_shutdown);
    }
    caf::anon_send_exit(journal_, caf::exit_reason::kill);
    caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(asker, caf::exit_reason::kill);
  }

  void start_node(std::size_t i) {
    auto& x = *members[i];
    plane_options options;
    options.node_number = static_cast<std::uint32_t>(i + 1);
    options.boot_id = "boot";
    options.wall_offset_ms = run.wall_offset_ms();
    auto seed = load_seed(*x.durable, options);
    BOOST_REQUIRE(seed);
    BOOST_REQUIRE(x.durable->commit({opening_write(*seed)}));
    x.kernel = std::make_unique<sim_backend>(x.machine, backend_events{});
    x.id = seed->node.meta.node;
    x.journal = run.system().spawn(dsec::journal, x.durable.get());
    x.node = run.system().spawn(dsec::node, std::move(seed->node),
                                node_services{x.journal, effects{*x.kernel}}, options);
  }

  void kill_node(std::size_t i) {
    members[i]->kernel->disconnect();
    caf::anon_send_exit(members[i]->journal, caf::exit_reason::kill);
    caf::anon_send_exit(members[i]->node, caf::exit_reason::kill);
  }

  void start_gateway() {
    gateway =
      run.system().spawn(cluster, gateway_store->load()->jobs, journal_, run.wall_offset_ms());
    for (const auto& x : members)
      caf::anon_send(gateway, join_node{x->id, x->node});
    run.advance(10ms);
    job = *ask<job_actor>(gateway, open_job{job_id{"train"}, {}});
  }

  void restart_gateway() {
    job = nullptr;
    caf::anon_send_exit(gateway, caf::exit_reason::kill);
    run.settle();
    start_gateway();
  }

  template <class T, class Handle, class Message>
  answer<T> send(const Handle& receiver, Message message) {
    auto kept = std::make_shared<std::optional<result<T>>>();
    asker_call call = [=](caf::event_based_actor* self) {
      self->request(receiver, caf::infinite, message)
        .then([kept](const T& x) { *kept = x; },
              [kept](caf::error& cause) { *kept = from_caf(cause, "the actor"); });
    };
    caf::anon_send(asker, ask_message{std::make_shared<const asker_call>(std::move(call))});
    return kept;
  }

  template <class T, class Handle, class Message>
  result<T> ask(const Handle& receiver, Message message) {
    auto x = send<T>(receiver, std::move(message));
    run.advance(50ms);
    BOOST_REQUIRE(*x);
    return **x;
  }

  static create_batch batch_of(const std::vector<std::string>& keys) {
    create_batch batch;
    for (const auto& key : keys)
      batch.items.push_back({key, small_environment()});
    return batch;
  }

  std::vector<result<sandbox_id>> create(const std::vector<std::string>& keys) {
    auto reply = ask<create_reply_ptr>(job, batch_of(keys));
    BOOST_REQUIRE(reply);
    return (*reply)->sandboxes;
  }

  std::size_t alive(std::size_t i) const {
    return members[i]->machine.alive().size();
  }

  sim_time time;
  simulation run{time, 7};
  caf::actor asker = run.system().spawn(ask_for, 0);
  std::unique_ptr<store> gateway_store = make_memory_store();
  std::array<std::unique_ptr<member>, 2> members;
  journal_actor journal_;
  cluster_actor gateway;
  job_actor job;
};

const std::vector<std::string> eight{"a", "b", "c", "d", "e", "f", "g", "h"};

} // namespace

BOOST_FIXTURE_TEST_SUITE(keys_over_several_nodes, fixture)

BOOST_AUTO_TEST_CASE(a_repeated_key_finds_its_sandbox_after_the_gateway_was_started_anew) {
  auto first = create(eight);
  BOOST_TEST(alive(0) > 0);
  BOOST_TEST(alive(1) > 0);
  restart_gateway();
  // In another order, so that an even spread would send them elsewhere.
  std::vector<std::string> turned{eight.rbegin(), eight.rend()};
  auto again = create(turned);
  for (std::size_t i = 0; i < eight.size(); ++i)
    BOOST_TEST(*again[i] == *first[eight.size() - 1 - i]);
  BOOST_TEST(alive(0) + alive(1) == eight.size());
}

BOOST_AUTO_TEST_CASE(a_repeated_key_finds_its_sandbox_after_the_jobs_actor_has_died) {
  auto first = create(eight);
  caf::anon_send_exit(job, caf::exit_reason::kill);
  run.advance(10ms);
  job = *ask<job_actor>(gateway, find_job{job_id{"train"}});
  std::vector<std::string> turned{eight.rbegin(), eight.rend()};
  auto again = create(turned);
  for (std::size_t i = 0; i < eight.size(); ++i)
    BOOST_TEST(*again[i] == *first[eight.size() - 1 - i]);
  BOOST_TEST(alive(0) + alive(1) == eight.size());
}

BOOST_AUTO_TEST_CASE(a_key_that_a_silent_node_might_have_is_refused_and_the_rest_is_made) {
  create(eight);
  kill_node(0);
  restart_gateway();
  run.advance(2s);
  auto made = create({"new", "", "a"});
  BOOST_REQUIRE(!made[0]);
  BOOST_TEST(made[0].error().code == errc::unavailable);
  BOOST_TEST(made[1]);
  // When the node is back, it is asked.
  start_node(0);
  caf::anon_send(gateway, join_node{members[0]->id, members[0]->node});
  run.advance(2s);
  BOOST_TEST(create({"new"})[0]);
}

BOOST_AUTO_TEST_CASE(creations_with_one_key_at_once_make_one_sandbox) {
  std::vector<answer<create_reply_ptr>> all;
  for (int i = 0; i < 6; ++i)
    all.push_back(send<create_reply_ptr>(job, batch_of({"k", "k"})));
  run.advance(100ms);
  auto first = *(**all[0])->get()->sandboxes[0];
  for (const auto& x : all)
    for (const auto& id : (**x)->get()->sandboxes)
      BOOST_TEST(*id == first);
  BOOST_TEST(alive(0) + alive(1) == 1);
}

BOOST_AUTO_TEST_CASE(a_key_whose_node_died_before_it_answered_is_not_made_on_another) {
  std::optional<std::size_t> dead;
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i]->durable->created = [&, i] {
      kill_node(i);
      dead = i;
    };
  auto waiting = send<create_reply_ptr>(job, batch_of({"k"}));
  run.advance(1s);
  BOOST_REQUIRE(dead);
  auto home = *dead;
  members[1 - home]->durable->created = nullptr;
  BOOST_REQUIRE(*waiting);
  const auto& refused = (**waiting)->get()->sandboxes[0];
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::unavailable);
  BOOST_TEST(!create({"k"})[0]);
  BOOST_TEST(alive(1 - home) == 0);
  start_node(home);
  caf::anon_send(gateway, join_node{members[home]->id, members[home]->node});
  run.advance(2s);
  auto again = create({"k"});
  BOOST_REQUIRE(again[0]);
  BOOST_TEST(*node_of(*again[0]) == members[home]->id);
}

BOOST_AUTO_TEST_CASE(the_list_of_all_nodes_fails_as_a_whole_if_one_does_not_answer) {
  create(eight);
  BOOST_TEST((*ask<inventory_ptr>(gateway, inventory_query{}))->sandboxes.size() == eight.size());
  BOOST_TEST((*ask<inventory_ptr>(job, inventory_query{}))->sandboxes.size() == eight.size());
  kill_node(1);
  BOOST_TEST(ask<inventory_ptr>(gateway, inventory_query{}).error().code == errc::unavailable);
  BOOST_TEST(ask<inventory_ptr>(job, inventory_query{}).error().code == errc::unavailable);
}

BOOST_AUTO_TEST_SUITE_END()
