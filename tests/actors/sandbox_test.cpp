#define BOOST_TEST_MODULE actors_sandbox

#include "tests/actors/sandbox_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(sandbox, sandbox_fixture)

BOOST_AUTO_TEST_CASE(a_created_sandbox_runs_and_its_id_names_its_node) {
  BOOST_TEST(state() == sandbox_state::running);
  BOOST_TEST(*node_of(id) == now->actors().node);
  auto done = run({"exit", "3"});
  BOOST_REQUIRE(done);
  BOOST_TEST((*done)->outcome.kind == outcome_kind::exited);
  BOOST_TEST((*done)->outcome.code == 3);
}

BOOST_AUTO_TEST_CASE(a_recorded_step_is_replayed_and_runs_once) {
  auto first = run({"exit", "4"}, 1);
  auto again = run({"exit", "4"}, 1);
  BOOST_REQUIRE(first);
  BOOST_REQUIRE(again);
  BOOST_TEST(!(*first)->replayed);
  BOOST_TEST((*again)->replayed);
  BOOST_TEST((*again)->out == (*first)->out);
  BOOST_TEST((*again)->outcome.code == 4);
  BOOST_TEST(begun(1) == 1);
}

BOOST_AUTO_TEST_CASE(a_step_sent_again_with_another_request_is_diverged) {
  BOOST_REQUIRE(run({"exit", "4"}, 1));
  auto other = run({"exit", "5"}, 1);
  BOOST_REQUIRE(!other);
  BOOST_TEST(other.error().code == errc::diverged);
}

BOOST_AUTO_TEST_CASE(a_step_in_flight_is_joined_and_answered_together) {
  auto first = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}, 7));
  now->advance(100ms);
  auto second = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}, 7));
  now->advance(100ms);
  BOOST_TEST(!*first);
  BOOST_REQUIRE(now->wait(first));
  BOOST_REQUIRE(*second);
  BOOST_TEST(*(**first) == *(**second));
  BOOST_TEST(begun(7) == 1);
}

BOOST_AUTO_TEST_CASE(a_recorded_step_is_replayed_after_a_crash) {
  BOOST_REQUIRE(run({"exit", "4"}, 1));
  restart();
  auto again = run({"exit", "4"}, 1);
  BOOST_REQUIRE(again);
  BOOST_TEST((*again)->replayed);
  BOOST_TEST(begun(1) == 1);
}

BOOST_AUTO_TEST_CASE(a_step_that_ran_through_a_crash_is_joined_by_the_same_request) {
  auto lost = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}, 1));
  now->advance(100ms);
  restart();
  auto again = run({"think-ms", "500"}, 1);
  BOOST_REQUIRE(again);
  BOOST_TEST((*again)->outcome.kind == outcome_kind::exited);
  BOOST_TEST(begun(1) == 1);
  BOOST_TEST(run({"exit", "1"}, 1).error().code == errc::diverged);
}

BOOST_AUTO_TEST_CASE(unrecorded_execs_never_reuse_an_id_after_a_crash) {
  BOOST_REQUIRE(run({"exit", "0"}));
  restart();
  BOOST_REQUIRE(run({"exit", "0"}));
  for (const auto& [exec, times] : machine.truth().begun)
    BOOST_TEST(times == 1);
  BOOST_TEST(machine.truth().begun.size() == 2);
}

BOOST_AUTO_TEST_CASE(a_cancelled_exec_is_told_apart_from_a_signalled_one) {
  auto cancelled = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, {}, 1));
  auto signalled = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, {}, 2));
  now->advance(50ms);
  now->tell(sandbox, cancel_exec{1});
  now->tell(sandbox, signal_exec{2, 15});
  BOOST_TEST((*now->wait(cancelled))->outcome.kind == outcome_kind::cancelled);
  BOOST_TEST((*now->wait(signalled))->outcome.kind == outcome_kind::signalled);
}

BOOST_AUTO_TEST_CASE(an_exec_in_flight_when_it_is_stopped_ends_as_sandbox_stopped) {
  auto running = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, 1));
  now->advance(50ms);
  BOOST_REQUIRE(now->ask<ack>(sandbox, stop_request{}));
  BOOST_TEST((*now->wait(running))->outcome.kind == outcome_kind::sandbox_stopped);
  auto replayed = run({"think-ms", "9000"}, 1);
  BOOST_REQUIRE(replayed);
  BOOST_TEST((*replayed)->outcome.kind == outcome_kind::sandbox_stopped);
}

BOOST_AUTO_TEST_CASE(an_agent_that_destroys_its_sandbox_gets_self_inflicted_and_a_tombstone) {
  auto done = run({"self-destruct"}, 1);
  BOOST_REQUIRE(done);
  BOOST_TEST((*done)->outcome.kind == outcome_kind::self_inflicted);
  now->advance(1s);
  BOOST_TEST(info(id).state == sandbox_state::terminated);
  BOOST_TEST(info(id).cause == end_cause::self_inflicted);
  BOOST_TEST(machine.alive().empty());
}

BOOST_AUTO_TEST_CASE(a_step_whose_supervisor_died_is_infrastructure_and_never_run_again) {
  auto running = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, 1));
  now->advance(50ms);
  machine.kill_supervisor(id);
  auto done = now->wait(running);
  BOOST_REQUIRE(done);
  BOOST_TEST((*done)->outcome.kind == outcome_kind::infrastructure);
  BOOST_TEST((*done)->outcome.cause.find("effect unknown") == 0u);
  now->advance(1s);
  BOOST_TEST(info(id).cause == end_cause::infrastructure);
  BOOST_TEST(begun(1) == 1);
}

BOOST_AUTO_TEST_CASE(a_silent_backend_is_a_fault_after_the_timeout) {
  machine.faults.silent = 1000;
  auto paused = now->send<reclaim_report>(sandbox, pause_request{});
  now->advance(59s);
  BOOST_TEST(!*paused);
  machine.faults.silent = 0;
  now->advance(2s);
  BOOST_REQUIRE(*paused);
  BOOST_TEST(!**paused);
  BOOST_TEST(info(id).state == sandbox_state::terminated);
  BOOST_TEST(info(id).cause == end_cause::infrastructure);
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_answers_no_question_is_unavailable_after_the_timeout) {
  machine.faults.silent = 1000;
  auto read = std::make_shared<const file_request>(file_read{"/a", 100});
  auto file = now->send<file_reply_ptr>(sandbox, file_message{read});
  now->advance(30s);
  auto stats = now->send<sandbox_stats>(sandbox, stats_request{});
  now->advance(29s);
  BOOST_TEST(!*file);
  now->advance(2s);
  BOOST_REQUIRE(*file);
  BOOST_TEST((*file)->error().code == errc::unavailable);
  BOOST_TEST((*file)->error().message.find("60000 ms") != std::string::npos);
  BOOST_TEST(!*stats);
  now->advance(30s);
  BOOST_REQUIRE(*stats);
  BOOST_TEST((*stats)->error().code == errc::unavailable);
  machine.faults.silent = 0;
  BOOST_TEST(now->ask<sandbox_stats>(sandbox, stats_request{}));
}

BOOST_AUTO_TEST_CASE(what_no_caller_can_ask_for_any_more_is_forgotten_after_a_crash) {
  auto ended = now->send<exec_result_ptr>(sandbox, command({"think-ms", "10"}));
  auto running = now->send<exec_result_ptr>(sandbox, command({"think-ms", "5000"}));
  auto step = now->send<exec_result_ptr>(sandbox, command({"think-ms", "10"}, 1));
  now->advance(5ms);
  BOOST_TEST(machine.kept(id).size() == 3);
  now.reset();
  time.advance_to(time.now() + 1s);
  BOOST_TEST(machine.kept(id).size() == 3);
  restart();
  now->advance(100ms);
  // The step is still to be joined; the command that runs is cancelled.
  BOOST_TEST(machine.kept(id) == std::vector<exec_id>{1}, boost::test_tools::per_element());
  BOOST_REQUIRE(run({"think-ms", "10"}, 1));
  now->advance(1s);
  BOOST_TEST(machine.kept(id).empty());
  BOOST_TEST(begun(1) == 1);
}

BOOST_AUTO_TEST_CASE(a_sandbox_whose_actor_died_is_unavailable_and_then_there_again) {
  BOOST_REQUIRE(run({"exit", "0"}, 1));
  auto running = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}, 2));
  now->advance(100ms);
  caf::anon_send_exit(sandbox, caf::exit_reason::unhandled_exception);
  now->settle();
  BOOST_REQUIRE(*running);
  BOOST_TEST((*running)->error().code == errc::unavailable);
  BOOST_TEST(run({"exit", "0"}, 1).error().code == errc::unavailable);
  sandbox = find(id);
  BOOST_TEST((*run({"exit", "0"}, 1))->replayed);
  BOOST_REQUIRE(run({"think-ms", "500"}, 2));
  BOOST_TEST(begun(2) == 1);
}

BOOST_AUTO_TEST_CASE(a_sandbox_whose_actor_died_while_it_was_paused_is_found_paused) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  caf::anon_send_exit(sandbox, caf::exit_reason::unhandled_exception);
  now->advance(1s);
  sandbox = find(id);
  BOOST_TEST(state() == sandbox_state::reclaimed);
  BOOST_TEST(run({"exit", "0"}));
}

BOOST_AUTO_TEST_CASE(a_stop_that_fails_is_tried_again_until_nothing_is_left) {
  machine.faults.stop_fails = 1000;
  auto refused = now->ask<ack>(sandbox, stop_request{});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::unavailable);
  BOOST_TEST(machine.alive().size() == 1);
  machine.faults.stop_fails = 0;
  now->advance(20s);
  BOOST_TEST(machine.alive().empty());
  BOOST_TEST(info(id).state == sandbox_state::terminated);
}

BOOST_AUTO_TEST_CASE(pending_execs_are_bounded_and_the_limit_is_named) {
  std::vector<answer<exec_result_ptr>> all;
  for (int i = 0; i < 256; ++i)
    all.push_back(now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"})));
  now->settle();
  auto refused = run({"exit", "0"});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::exhausted);
  BOOST_TEST(refused.error().message.find("256") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_request_that_is_wrong_is_refused_before_anything_is_recorded) {
  auto refused = run({}, 1);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::invalid_argument);
  BOOST_TEST(run({"exit", "0"}, 1));
}

BOOST_AUTO_TEST_SUITE_END()
