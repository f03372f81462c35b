#define BOOST_TEST_MODULE actors_sandbox_pause

#include "tests/actors/sandbox_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(pausing, sandbox_fixture)

BOOST_AUTO_TEST_CASE(pause_answers_only_after_the_backend_froze_it) {
  auto paused = now->send<reclaim_report>(sandbox, pause_request{});
  now->settle();
  BOOST_TEST(!*paused);
  BOOST_TEST(state() == sandbox_state::pausing);
  BOOST_REQUIRE(now->wait(paused));
  BOOST_TEST(state() == sandbox_state::paused);
}

BOOST_AUTO_TEST_CASE(reclaim_tells_what_it_gave_back) {
  auto report = now->ask<reclaim_report>(sandbox, pause_request{true, false});
  BOOST_REQUIRE(report);
  BOOST_TEST(report->before_bytes == 64ull << 20);
  BOOST_TEST(report->after_bytes == 0);
  BOOST_TEST(state() == sandbox_state::reclaimed);
}

BOOST_AUTO_TEST_CASE(stop_overtakes_a_pause_in_flight) {
  auto paused = now->send<reclaim_report>(sandbox, pause_request{});
  now->settle();
  auto stopped = now->send<ack>(sandbox, stop_request{});
  now->settle();
  BOOST_REQUIRE(*paused);
  BOOST_REQUIRE(!**paused);
  BOOST_TEST((*paused)->error().code == errc::invalid_state);
  // The pause succeeds after all, too late.
  now->advance(3500us);
  BOOST_TEST(!*stopped);
  BOOST_TEST(machine.alive().size() == 1);
  BOOST_REQUIRE(now->wait(stopped));
  BOOST_TEST(state() == sandbox_state::terminated);
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(a_request_overtakes_a_pause_that_then_changes_nothing) {
  auto paused = now->send<reclaim_report>(sandbox, pause_request{true, false});
  now->settle();
  auto done = now->send<exec_result_ptr>(sandbox, command({"exit", "0"}));
  now->settle();
  BOOST_REQUIRE(*paused);
  BOOST_REQUIRE(!**paused);
  BOOST_TEST((*paused)->error().message.find("overtaken by a later request") != std::string::npos);
  BOOST_REQUIRE(now->wait(done));
  BOOST_TEST(state() == sandbox_state::running);
}

BOOST_AUTO_TEST_CASE(ten_execs_on_a_reclaimed_sandbox_resume_it_once) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  std::size_t resumes = 0;
  std::vector<answer<exec_result_ptr>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(now->send<exec_result_ptr>(sandbox, command({"exit", "0"})));
  changed = [&](const sandbox_record& x) {
    resumes += x.is == sandbox_state::resuming;
  };
  for (auto& x : all)
    BOOST_REQUIRE(now->wait(x));
  BOOST_TEST(resumes == 1);
}

BOOST_AUTO_TEST_CASE(a_held_sandbox_answers_preempted_until_it_is_resumed) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, true}));
  auto refused = run({"exit", "0"});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::preempted);
  BOOST_TEST(state() == sandbox_state::reclaimed);
  BOOST_REQUIRE(now->ask<ack>(sandbox, resume_request{}));
  BOOST_TEST(run({"exit", "0"}));
}

BOOST_AUTO_TEST_CASE(requests_that_a_pause_overtakes_before_they_begin_bring_it_back) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  auto done = now->send<exec_result_ptr>(sandbox, command({"exit", "0"}));
  auto read = std::make_shared<const file_request>(file_read{"/none", 100});
  auto bytes = now->send<file_reply_ptr>(sandbox, file_message{read});
  now->settle();
  auto paused = now->send<reclaim_report>(sandbox, pause_request{true, false});
  BOOST_REQUIRE(now->wait(paused));
  BOOST_REQUIRE(now->wait(done));
  BOOST_TEST(now->wait(bytes).error().code == errc::not_found);
  BOOST_TEST(state() == sandbox_state::running);
}

BOOST_AUTO_TEST_CASE(requests_that_a_preemption_overtakes_before_they_begin_are_told) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  auto done = now->send<exec_result_ptr>(sandbox, command({"exit", "0"}, 1));
  auto read = std::make_shared<const file_request>(file_read{"/none", 100});
  auto bytes = now->send<file_reply_ptr>(sandbox, file_message{read});
  now->settle();
  auto paused = now->send<reclaim_report>(sandbox, pause_request{true, true});
  BOOST_REQUIRE(now->wait(paused));
  BOOST_TEST(now->wait(done).error().code == errc::preempted);
  BOOST_TEST(now->wait(bytes).error().code == errc::preempted);
  BOOST_TEST(state() == sandbox_state::reclaimed);
  // The step has not run: it does when it is asked for again.
  BOOST_REQUIRE(now->ask<ack>(sandbox, resume_request{}));
  BOOST_REQUIRE(run({"exit", "0"}, 1));
}

BOOST_AUTO_TEST_CASE(reads_do_not_thaw_it) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  BOOST_REQUIRE(now->ask<sandbox_info>(sandbox, info_request{}));
  auto stats = now->ask<sandbox_stats>(sandbox, stats_request{});
  BOOST_REQUIRE(stats);
  BOOST_TEST(stats->memory_bytes == 0);
  BOOST_TEST(state() == sandbox_state::reclaimed);
}

BOOST_AUTO_TEST_CASE(a_file_operation_resumes_it) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{}));
  auto write = std::make_shared<const file_request>(file_write{"/a", "bytes", 0644, true, false});
  BOOST_REQUIRE(now->ask<file_reply_ptr>(sandbox, file_message{write}));
  BOOST_TEST(state() == sandbox_state::running);
  auto read = std::make_shared<const file_request>(file_read{"/a", 100});
  BOOST_TEST((*now->ask<file_reply_ptr>(sandbox, file_message{read}))->bytes == "bytes");
  auto missing = std::make_shared<const file_request>(file_read{"/b", 100});
  BOOST_TEST(now->ask<file_reply_ptr>(sandbox, file_message{missing}).error().code
             == errc::not_found);
}

BOOST_AUTO_TEST_CASE(a_command_that_is_frozen_by_a_pause_goes_on_when_it_is_resumed) {
  auto running = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}));
  now->advance(100ms);
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  now->advance(10s);
  BOOST_TEST(!*running);
  BOOST_TEST(state() == sandbox_state::reclaimed);
  BOOST_REQUIRE(now->ask<ack>(sandbox, resume_request{}));
  now->advance(300ms);
  BOOST_TEST(!*running);
  now->advance(200ms);
  BOOST_REQUIRE(*running);
  BOOST_TEST((***running)->outcome.kind == outcome_kind::exited);
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_given_back_leaves_it_paused) {
  machine.faults.reclaim_fails = 1000;
  auto refused = now->ask<reclaim_report>(sandbox, pause_request{true, false});
  BOOST_TEST(!refused);
  BOOST_TEST(state() == sandbox_state::paused);
  BOOST_TEST(run({"exit", "0"}));
}

BOOST_AUTO_TEST_SUITE_END()
