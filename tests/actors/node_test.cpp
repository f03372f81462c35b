#define BOOST_TEST_MODULE actors_node

#include "actors/wiring.hpp"
#include "state/forwarding_store.hpp"
#include "state/invariants.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

/// Memory, until it is told to fail.
class failing_store final : public forwarding_store {
public:
  failing_store() : forwarding_store{make_memory_store()} {}

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    ++commits;
    if (fail)
      return error{errc::unavailable, "sync the log: EIO"};
    return forwarding_store::commit(batches);
  }

  bool fail = false;
  std::size_t commits = 0;
};

struct fixture : machine_fixture {
  std::vector<result<sandbox_id>>
  create_many(const job_actor& job, std::size_t n, const std::string& key = {}) {
    create_batch batch;
    for (std::size_t i = 0; i < n; ++i)
      batch.items.push_back({key.empty() ? key : key + std::to_string(i), small_environment()});
    auto reply = now->send<create_reply_ptr>(job, batch);
    now->settle();
    BOOST_REQUIRE(*reply);
    BOOST_REQUIRE(**reply);
    return (**reply)->get()->sandboxes;
  }

  void restart_with(plane_options changed_options) {
    now.reset();
    options = std::move(changed_options);
    start();
  }

  failing_store& use_failing_store() {
    now.reset();
    auto made = std::make_unique<failing_store>();
    auto& kept = *made;
    durable = std::move(made);
    start();
    return kept;
  }

  std::vector<sandbox_info> list(bool with_ended) {
    return (*now->ask<inventory_ptr>(now->actors().cluster, inventory_query{{}, with_ended}))
      ->sandboxes;
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(node, fixture)

BOOST_AUTO_TEST_CASE(a_repeated_idempotency_key_returns_the_same_sandbox_also_after_a_crash) {
  auto first = create_many(open("train"), 3, "k");
  auto again = create_many(open("train"), 3, "k");
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(*first[i] == *again[i]);
  crash();
  start();
  auto after = create_many(open("train"), 3, "k");
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(*first[i] == *after[i]);
  now->advance(1s);
  BOOST_TEST(machine.alive().size() == 3);
}

BOOST_AUTO_TEST_CASE(a_repeated_key_with_another_environment_is_refused_also_after_a_crash) {
  auto again = [&](std::uint64_t memory_bytes) {
    auto environment = small_environment();
    environment.limits.memory_bytes = memory_bytes;
    create_batch batch{{{"k", environment}, {"k", environment}}};
    return (*now->ask<create_reply_ptr>(open("train"), batch))->sandboxes;
  };
  auto first = again(64 << 20);
  BOOST_TEST(*first[0] == *first[1]);
  crash();
  start();
  for (const auto& other : again(128 << 20)) {
    BOOST_TEST_REQUIRE(!other);
    BOOST_TEST((other.error().code == errc::diverged));
    BOOST_TEST(other.error().message.find(first[0]->str()) != std::string::npos);
  }
  BOOST_TEST(*again(64 << 20)[0] == *first[0]);
}

BOOST_AUTO_TEST_CASE(two_creations_with_one_key_at_once_make_one_sandbox) {
  auto job = open("train");
  create_batch batch{{{"k", small_environment()}}};
  auto first = now->send<create_reply_ptr>(job, batch);
  auto second = now->send<create_reply_ptr>(job, batch);
  BOOST_REQUIRE(now->wait(first));
  BOOST_REQUIRE(now->wait(second));
  BOOST_TEST(*(**first)->get()->sandboxes[0] == *(**second)->get()->sandboxes[0]);
}

BOOST_AUTO_TEST_CASE(a_full_node_refuses_each_item_on_its_own_and_names_the_limit) {
  auto small = options;
  small.capacity = 2;
  restart_with(small);
  auto made = create_many(open("train"), 3);
  BOOST_TEST(made[0]);
  BOOST_TEST(made[1]);
  BOOST_REQUIRE(!made[2]);
  BOOST_TEST(made[2].error().code == errc::exhausted);
  BOOST_TEST(made[2].error().message.find("2") != std::string::npos);
  now->advance(1s);
  BOOST_REQUIRE(now->ask<ack>(find(*made[0]), stop_request{}));
  now->advance(2s);
  BOOST_TEST(create_many(open("train"), 1)[0]);
}

BOOST_AUTO_TEST_CASE(an_environment_that_is_wrong_fails_its_item_alone) {
  auto job = open("train");
  environment wrong = small_environment();
  wrong.limits.memory_bytes = 1;
  auto reply =
    now->ask<create_reply_ptr>(job, create_batch{{{"", wrong}, {"", small_environment()}}});
  BOOST_REQUIRE(reply);
  BOOST_TEST((*reply)->sandboxes[0].error().code == errc::invalid_argument);
  BOOST_TEST((*reply)->sandboxes[1]);
}

BOOST_AUTO_TEST_CASE(a_batch_is_one_durable_write_and_each_start_a_second) {
  auto& disk = use_failing_store();
  auto job = open("train");
  auto before = disk.commits;
  auto made = create_many(job, 50);
  // The job's block of indices, and all fifty records.
  BOOST_TEST(disk.commits - before == 2);
  now->advance(1s);
  BOOST_TEST(machine.alive().size() == 50);
}

BOOST_AUTO_TEST_CASE(ids_are_never_given_out_twice_not_even_after_a_crash) {
  auto first = create_many(open("train"), 2);
  crash();
  start();
  auto second = create_many(open("train"), 2);
  for (const auto& a : first)
    for (const auto& b : second)
      BOOST_TEST(*a != *b);
}

BOOST_AUTO_TEST_CASE(a_failed_start_leaves_a_tombstone_with_its_cause) {
  machine.faults.start_fails = 1000;
  auto made = create_many(open("train"), 1);
  auto found = now->send<find_reply>(now->actors().cluster, find_sandbox{*made[0]});
  now->settle();
  BOOST_REQUIRE(*found);
  auto up = now->ask<ack>((**found)->actor, await_running{});
  BOOST_REQUIRE(!up);
  BOOST_TEST(up.error().code == errc::exhausted);
  BOOST_TEST(up.error().message.find("injected failure") != std::string::npos);
  now->advance(1s);
  BOOST_TEST(info(*made[0]).state == sandbox_state::terminated);
  BOOST_TEST(info(*made[0]).cause == end_cause::start_failed);
}

BOOST_AUTO_TEST_CASE(a_failed_start_is_told_when_its_place_is_free_again) {
  auto one = options;
  one.capacity = 1;
  restart_with(one);
  machine.faults.start_fails = 1000;
  auto made = create_many(open("train"), 1);
  auto found = now->send<find_reply>(now->actors().cluster, find_sandbox{*made[0]});
  now->settle();
  BOOST_REQUIRE(*found);
  auto up = now->ask<ack>((**found)->actor, await_running{});
  BOOST_REQUIRE(!up);
  BOOST_TEST(up.error().code == errc::exhausted);
  BOOST_TEST(up.error().message.find("injected failure") != std::string::npos);
  machine.faults.start_fails = 0;
  BOOST_TEST(create_many(open("train"), 1)[0]);
}

BOOST_AUTO_TEST_CASE(a_key_whose_sandbox_failed_to_start_makes_another_one_also_after_a_crash) {
  machine.faults.start_fails = 1000;
  auto failed = create_many(open("train"), 1, "k");
  now->advance(1s);
  BOOST_TEST(info(*failed[0]).cause == end_cause::start_failed);
  machine.faults.start_fails = 0;
  auto made = create_many(open("train"), 1, "k");
  BOOST_TEST(*made[0] != *failed[0]);
  now->advance(1s);
  BOOST_TEST(info(*made[0]).state == sandbox_state::running);
  BOOST_TEST(violations(*durable->load()).empty());
  crash();
  start();
  // The one that never ran does not hide the one that does.
  BOOST_TEST(*create_many(open("train"), 1, "k")[0] == *made[0]);
  BOOST_TEST(list(false).size() == 1);
  BOOST_REQUIRE(now->ask<ack>(find(*made[0]), stop_request{}));
  now->advance(1s);
  // One that did run keeps its key.
  BOOST_TEST(*create_many(open("train"), 1, "k")[0] == *made[0]);
}

BOOST_AUTO_TEST_CASE(tombstones_are_bounded_and_the_oldest_goes_first) {
  auto few = options;
  few.tombstones = 2;
  restart_with(few);
  auto job = open("train");
  std::vector<sandbox_id> ended;
  for (int i = 0; i < 4; ++i) {
    ended.push_back(create(job, "k" + std::to_string(i)));
    BOOST_REQUIRE(now->ask<ack>(find(ended.back()), stop_request{}));
    now->advance(1s);
  }
  BOOST_TEST(list(true).size() == 2);
  auto oldest = now->ask<find_reply>(now->actors().cluster, find_sandbox{ended[0]});
  BOOST_REQUIRE(!oldest);
  BOOST_TEST(oldest.error().code == errc::not_found);
  BOOST_TEST(info(ended[3]).state == sandbox_state::terminated);
  crash();
  start();
  BOOST_TEST(list(true).size() == 2);
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_no_record_speaks_of_is_removed) {
  create_many(open("train"), 3);
  now->advance(1s);
  now.reset();
  durable = make_memory_store();
  start();
  now->advance(1s);
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(after_a_reboot_everything_has_failed_with_that_cause) {
  auto id = create(open("train"));
  reboot();
  start();
  now->advance(1s);
  BOOST_TEST(info(id).state == sandbox_state::terminated);
  BOOST_TEST(info(id).cause == end_cause::infrastructure);
  BOOST_TEST(info(id).detail == "the machine was rebooted");
}

BOOST_AUTO_TEST_CASE(what_died_while_nobody_looked_is_found_out_at_the_start) {
  auto id = create(open("train"));
  auto other = create(open("train"));
  crash();
  machine.kill_supervisor(id);
  start();
  now->advance(1s);
  BOOST_TEST(info(id).cause == end_cause::infrastructure);
  BOOST_TEST(info(other).state == sandbox_state::running);
  BOOST_TEST(machine.alive().size() == 1);
}

BOOST_AUTO_TEST_CASE(a_backend_that_does_not_say_what_lives_fails_the_recovery_after_the_timeout) {
  auto id = create(open("train"));
  crash();
  machine.faults.silent = 1000;
  start();
  auto self = caf::actor_cast<node_inside>(now->actors().node_handle);
  auto waiting = now->send<ack>(self, await_recovered{});
  now->advance(59s);
  BOOST_TEST(!*waiting);
  now->advance(2s);
  BOOST_REQUIRE(*waiting);
  BOOST_REQUIRE(!**waiting);
  BOOST_TEST((*waiting)->error().code == errc::unavailable);
  BOOST_TEST((*waiting)->error().message.find("inventory") != std::string::npos);
  BOOST_TEST((*waiting)->error().message.find("60000 ms") != std::string::npos);
  machine.faults.silent = 0;
  now->advance(3min);
  BOOST_TEST(now->ask<ack>(self, await_recovered{}));
}

BOOST_AUTO_TEST_CASE(a_sandbox_whose_end_nobody_tells_is_failed_after_the_timeout) {
  auto id = create(open("train"));
  crash();
  machine.faults.silent = 1000;
  start();
  now->advance(119s);
  BOOST_TEST(info(id).state == sandbox_state::running);
  now->advance(2s);
  machine.faults.silent = 0;
  now->advance(3min);
  BOOST_TEST(info(id).state == sandbox_state::terminated);
  BOOST_TEST(info(id).cause == end_cause::infrastructure);
  BOOST_TEST(info(id).detail.find("did not say within 60000 ms how it ended") != std::string::npos);
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(a_leak_whose_tear_down_fails_is_torn_down_later) {
  create_many(open("train"), 1);
  now->advance(1s);
  now.reset();
  durable = make_memory_store();
  auto leaked = machine.alive();
  machine.faults.stop_fails = 1000;
  start();
  now->advance(12s);
  BOOST_TEST(machine.alive() == leaked, boost::test_tools::per_element());
  machine.faults.stop_fails = 0;
  now->advance(6s);
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(a_sandbox_whose_actor_dies_again_and_again_ends_in_a_typed_error) {
  auto job = open("train");
  auto id = create(job);
  auto other = create(job);
  for (int deaths = 0; deaths < 8; ++deaths) {
    caf::anon_send_exit(find(id), caf::exit_reason::unhandled_exception);
    now->advance(1s);
  }
  auto found = now->ask<find_reply>(now->actors().cluster, find_sandbox{id});
  BOOST_REQUIRE(!found);
  BOOST_TEST(found.error().code == errc::unavailable);
  BOOST_TEST(found.error().message.find("died 8 times") != std::string::npos);
  auto report = now->ask<preempt_report>(job, preempt_job{});
  BOOST_REQUIRE(report);
  BOOST_TEST(report->sandboxes == 2);
  BOOST_TEST(report->failed == 1);
  BOOST_TEST(report->reclaimed == 1);
  BOOST_TEST(list(false).size() == 2);
  auto closed = now->ask<ack>(job, stop_request{});
  BOOST_REQUIRE(!closed);
  BOOST_TEST(closed.error().code == errc::unavailable);
  BOOST_TEST(machine.alive().size() == 1);
  // The next process takes it up again.
  job = nullptr;
  crash();
  start();
  BOOST_TEST(now->ask<ack>(find(id), stop_request{}));
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(a_creation_that_was_only_recorded_is_finished_after_a_crash) {
  auto made = create_many(open("train"), 1);
  crash();
  start();
  BOOST_REQUIRE(now->ask<ack>(find(*made[0]), await_running{}));
  BOOST_TEST(machine.alive().size() == 1);
}

BOOST_AUTO_TEST_CASE(when_the_journal_fails_nothing_is_promised_any_more) {
  auto& disk = use_failing_store();
  auto job = open("train");
  auto id = create(job);
  auto sandbox = find(id);
  disk.fail = true;
  auto step = now->ask<exec_result_ptr>(sandbox, command({"exit", "0"}, 1));
  BOOST_REQUIRE(!step);
  BOOST_TEST(step.error().message.find("EIO") != std::string::npos);
  BOOST_TEST(machine.truth().begun.empty());
  disk.fail = false;
  auto later = now->ask<create_reply_ptr>(job, create_batch{{{"", small_environment()}}});
  BOOST_REQUIRE(later);
  BOOST_REQUIRE(!(*later)->sandboxes[0]);
  BOOST_TEST((*later)->sandboxes[0].error().code == errc::unavailable);
  BOOST_TEST((*later)->sandboxes[0].error().message.find("an earlier write failed")
             != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
