#define BOOST_TEST_MODULE actors_job

#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

struct fixture : machine_fixture {
  fixture() {
    job = open("train");
    for (int i = 0; i < 4; ++i)
      ids.push_back(create(job, "k" + std::to_string(i)));
  }

  ~fixture() {
    job = nullptr;
  }

  void restart() {
    job = nullptr;
    crash();
    start();
  }

  job_state state_of_job() {
    return now->ask<job_record>(job, job_request{})->state;
  }

  result<exec_result_ptr> run(const sandbox_id& id) {
    return now->ask<exec_result_ptr>(find(id), command({"exit", "0"}));
  }

  job_actor job;
  std::vector<sandbox_id> ids;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(job, fixture)

BOOST_AUTO_TEST_CASE(preempt_reclaims_every_sandbox_and_says_what_came_back) {
  auto report = now->ask<preempt_report>(job, preempt_job{});
  BOOST_REQUIRE(report);
  BOOST_TEST(report->sandboxes == 4);
  BOOST_TEST(report->reclaimed == 4);
  BOOST_TEST(report->failed == 0);
  BOOST_TEST(report->before_bytes == 4 * (64ull << 20));
  BOOST_TEST(report->after_bytes == 0);
  for (const auto& id : ids)
    BOOST_TEST(info(id).state == sandbox_state::reclaimed);
}

BOOST_AUTO_TEST_CASE(all_are_frozen_before_the_second_reclaim_is_done) {
  auto report = now->send<preempt_report>(job, preempt_job{});
  now->advance(20ms);
  for (const auto& id : ids) {
    auto is = info(id).state;
    BOOST_TEST((is == sandbox_state::paused || is == sandbox_state::reclaiming));
  }
  BOOST_REQUIRE(now->wait(report));
}

BOOST_AUTO_TEST_CASE(the_next_request_brings_back_what_was_preempted_until_then) {
  BOOST_REQUIRE(now->ask<preempt_report>(job, preempt_job{}));
  BOOST_TEST(run(ids[0]));
  BOOST_TEST(info(ids[0]).state == sandbox_state::running);
  BOOST_TEST(info(ids[1]).state == sandbox_state::reclaimed);
}

BOOST_AUTO_TEST_CASE(preempted_until_resume_is_held_refuses_creations_and_survives_a_restart) {
  BOOST_REQUIRE(now->ask<preempt_report>(job, preempt_job{preempt_mode::until_resume}));
  BOOST_TEST(run(ids[0]).error().code == errc::preempted);
  restart();
  auto known = now->ask<job_actor>(now->actors().cluster, find_job{job_id{"train"}});
  BOOST_REQUIRE(known);
  job = *known;
  BOOST_TEST(state_of_job() == job_state::preempted);
  BOOST_TEST(run(ids[0]).error().code == errc::preempted);
  auto refused = now->ask<create_reply_ptr>(job, create_batch{{{"", small_environment()}}});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::preempted);
  BOOST_REQUIRE(now->ask<ack>(job, resume_request{}));
  BOOST_TEST(state_of_job() == job_state::active);
  for (const auto& id : ids)
    BOOST_TEST(info(id).state == sandbox_state::running);
}

BOOST_AUTO_TEST_CASE(a_new_lease_ends_a_preemption) {
  BOOST_REQUIRE(now->ask<preempt_report>(job, preempt_job{preempt_mode::until_resume}));
  restart();
  job = open("train");
  BOOST_TEST(state_of_job() == job_state::active);
  BOOST_TEST(run(ids[0]));
}

BOOST_AUTO_TEST_CASE(a_preemption_that_a_crash_interrupted_is_finished) {
  auto lost = now->send<preempt_report>(job, preempt_job{});
  now->advance(5ms);
  restart();
  now->advance(2s);
  for (const auto& id : ids)
    BOOST_TEST(info(id).state == sandbox_state::reclaimed);
}

BOOST_AUTO_TEST_CASE(close_stops_everything_and_a_closed_job_takes_nothing_in) {
  BOOST_REQUIRE(now->ask<ack>(job, stop_request{}));
  BOOST_TEST(machine.alive().empty());
  auto refused = now->ask<create_reply_ptr>(job, create_batch{{{"", small_environment()}}});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::invalid_state);
  job = open("train");
  BOOST_TEST(state_of_job() == job_state::active);
  create(job);
}

BOOST_AUTO_TEST_CASE(a_reopened_job_starts_anew_and_its_old_keys_name_new_sandboxes) {
  auto keyed = [&] {
    auto reply =
      now->ask<create_reply_ptr>(job, create_batch{{{"rollout-0", small_environment()}}});
    BOOST_REQUIRE(reply);
    BOOST_REQUIRE((*reply)->sandboxes[0]);
    return *(*reply)->sandboxes[0];
  };
  auto before = keyed();
  BOOST_REQUIRE(now->ask<ack>(job, stop_request{}));
  job = open("train");
  auto after = keyed();
  BOOST_TEST(before.str() != after.str());
  now->advance(1s);
  BOOST_TEST(run(after));
  restart();
  now->advance(1s);
  job = open("train");
  BOOST_TEST(keyed().str() == after.str());
}

BOOST_AUTO_TEST_CASE(a_job_whose_actor_died_answers_its_callers_and_goes_on_from_its_record) {
  auto before = info(create(job)).index;
  auto waiting = now->send<preempt_report>(job, preempt_job{preempt_mode::until_resume});
  now->advance(5ms);
  BOOST_TEST(!*waiting);
  caf::anon_send_exit(job, caf::exit_reason::kill);
  now->settle();
  BOOST_REQUIRE(*waiting);
  BOOST_REQUIRE(!**waiting);
  BOOST_TEST((*waiting)->error().code == errc::unavailable);
  BOOST_TEST((*waiting)->error().message.find("job train") != std::string::npos);
  BOOST_TEST(now->ask<job_record>(job, job_request{}).error().code == errc::unavailable);
  auto known = now->ask<job_actor>(now->actors().cluster, find_job{job_id{"train"}});
  BOOST_REQUIRE(known);
  job = *known;
  BOOST_TEST(state_of_job() == job_state::preempted);
  BOOST_REQUIRE(now->ask<ack>(job, resume_request{}));
  BOOST_TEST(create(job, "k0").str() == ids[0].str());
  BOOST_TEST(info(create(job)).index > before);
  // It renews the lease as its former life did.
  now->advance(10min);
  BOOST_TEST(info(ids[0]).state == sandbox_state::running);
}

BOOST_AUTO_TEST_CASE(while_a_job_is_started_anew_it_is_unavailable_and_nobody_waits_for_ever) {
  caf::anon_send_exit(job, caf::exit_reason::kill);
  std::vector<answer<job_actor>> asked;
  for (int i = 0; i < 20; ++i) {
    asked.push_back(now->send<job_actor>(now->actors().cluster, open_job{job_id{"train"}, {}}));
    now->step(1);
  }
  now->settle();
  for (const auto& x : asked) {
    BOOST_REQUIRE(*x);
    if (!**x)
      BOOST_TEST((*x)->error().code == errc::unavailable, (*x)->error().message);
  }
  asked.clear();
  job = open("train");
  BOOST_TEST(create(job, "k0").str() == ids[0].str());
}

BOOST_AUTO_TEST_CASE(a_job_whose_actor_dies_again_and_again_ends_in_a_typed_error) {
  for (int deaths = 0; deaths < 8; ++deaths) {
    job = open("train");
    caf::anon_send_exit(job, caf::exit_reason::unhandled_exception);
    now->settle();
  }
  auto refused = now->ask<job_actor>(now->actors().cluster, open_job{job_id{"train"}, {}});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::unavailable);
  BOOST_TEST(refused.error().message.find("job train: its actor died 8 times")
             != std::string::npos);
  BOOST_TEST(now->ask<job_actor>(now->actors().cluster, find_job{job_id{"train"}}).error().code
             == errc::unavailable);
  // Its sandboxes are there, and so is it after a restart.
  BOOST_TEST(run(ids[0]));
  restart();
  job = open("train");
  BOOST_TEST(create(job, "k0").str() == ids[0].str());
}

BOOST_AUTO_TEST_CASE(the_lease_is_renewed_for_as_long_as_the_process_lives) {
  now->advance(10min);
  for (const auto& id : ids)
    BOOST_TEST(info(id).state == sandbox_state::running);
  BOOST_TEST(run(ids[0]));
}

BOOST_AUTO_TEST_CASE(
  without_its_trainer_a_sandbox_is_reclaimed_and_comes_back_with_the_next_request) {
  job = nullptr;
  crash();
  time.advance_to(time.now() + 60s);
  start();
  now->advance(1s);
  BOOST_TEST(info(ids[0]).state == sandbox_state::reclaimed);
  BOOST_TEST(run(ids[0]));
}

BOOST_AUTO_TEST_CASE(without_its_trainer_for_long_a_sandbox_ends_as_lease_expired) {
  job = nullptr;
  crash();
  time.advance_to(time.now() + 31min);
  start();
  now->advance(1s);
  BOOST_TEST(info(ids[0]).state == sandbox_state::terminated);
  BOOST_TEST(info(ids[0]).cause == end_cause::lease_expired);
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(indices_are_stable_names_and_never_repeat) {
  std::vector<std::uint64_t> seen;
  for (const auto& id : ids)
    seen.push_back(info(id).index);
  restart();
  job = open("train");
  seen.push_back(info(create(job)).index);
  std::ranges::sort(seen);
  BOOST_TEST((std::ranges::adjacent_find(seen) == seen.end()));
}

BOOST_AUTO_TEST_CASE(a_job_name_or_lease_that_is_wrong_is_refused) {
  auto cluster = now->actors().cluster;
  BOOST_TEST(now->ask<job_actor>(cluster, open_job{job_id{"a/b"}, {}}).error().code
             == errc::invalid_argument);
  BOOST_TEST(now->ask<job_actor>(cluster, open_job{job_id{"a"}, {10s, 1s}}).error().code
             == errc::invalid_argument);
  BOOST_TEST(now->ask<job_actor>(cluster, find_job{job_id{"none"}}).error().code
             == errc::not_found);
}

BOOST_AUTO_TEST_SUITE_END()
