#define BOOST_TEST_MODULE actors_sandbox_clocks

#include "tests/actors/sandbox_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

struct clocked : sandbox_fixture {
  sandbox_actor make(const sandbox_clocks& clocks) {
    auto reply = now->ask<create_reply_ptr>(job, create_batch{{{{}, small_environment(), clocks}}});
    BOOST_TEST_REQUIRE(bool(reply), reply);
    const auto& made = (*reply)->sandboxes.front();
    BOOST_TEST_REQUIRE(bool(made), made);
    id = *made;
    sandbox = find(id);
    BOOST_TEST_REQUIRE(bool(now->ask<ack>(sandbox, await_running{})));
    return sandbox;
  }

  sandbox_info seen() {
    return *now->ask<sandbox_info>(sandbox, info_request{});
  }

  sandbox_stats stats() {
    auto x = now->ask<sandbox_stats>(sandbox, stats_request{});
    BOOST_TEST_REQUIRE(bool(x), x);
    return *x;
  }

  result<ack> set(const sandbox_clocks& clocks) {
    return now->ask<ack>(sandbox, set_clocks{clocks});
  }

  std::optional<outcome_kind> kind_of(const answer<exec_result_ptr>& x) {
    if (!*x || !**x)
      return std::nullopt;
    return (**x)->get()->outcome.kind;
  }
};

sandbox_clocks idle(std::chrono::milliseconds after, idle_action then) {
  sandbox_clocks x;
  x.idle_timeout = after;
  x.on_idle = then;
  return x;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(clocks, clocked)

BOOST_AUTO_TEST_CASE(at_its_time_to_live_it_ends_and_its_command_is_expired) {
  make({10s});
  auto under_way = now->send<exec_result_ptr>(sandbox, command({"think-ms", "60000"}));
  now->advance(9900ms);
  BOOST_TEST(state() == sandbox_state::running);
  now->advance(200ms);
  BOOST_TEST((kind_of(under_way) == outcome_kind::expired));
  now->advance(1s);
  BOOST_TEST(seen().state == sandbox_state::terminated);
  BOOST_TEST(seen().cause == end_cause::time_to_live);
  BOOST_TEST(seen().detail == "its time to live of 10000 ms has passed");
  auto late = run({"exit", "0"});
  BOOST_REQUIRE(!late);
  BOOST_TEST(late.error().code == errc::expired);
}

BOOST_AUTO_TEST_CASE(a_time_to_live_passes_in_a_pause_and_a_rollout_budget_does_not) {
  make({20s, 5s});
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  auto left = stats().rollout_budget_left;
  now->advance(10s);
  BOOST_TEST((stats().rollout_budget_left == left));
  BOOST_TEST(stats().time_to_live_left.count() < 11'000);
  now->advance(11s);
  BOOST_TEST(seen().cause == end_cause::time_to_live);
}

BOOST_AUTO_TEST_CASE(at_its_rollout_budget_it_ends_and_its_command_is_budget_spent) {
  make({0ms, 5s});
  auto under_way = now->send<exec_result_ptr>(sandbox, command({"think-ms", "60000"}));
  now->advance(4s);
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{}));
  now->advance(1min);
  BOOST_TEST(!*under_way);
  BOOST_REQUIRE(now->ask<ack>(sandbox, resume_request{}));
  now->advance(900ms);
  BOOST_TEST(!*under_way);
  now->advance(200ms);
  BOOST_TEST((kind_of(under_way) == outcome_kind::budget_spent));
  now->advance(1s);
  BOOST_TEST(seen().cause == end_cause::rollout_budget);
}

BOOST_AUTO_TEST_CASE(clocks_that_are_set_later_count_from_where_they_began) {
  make({10s});
  now->advance(8s);
  BOOST_REQUIRE(set({30s}));
  BOOST_TEST(seen().clocks.time_to_live.count() == 30'000);
  now->advance(20s);
  BOOST_TEST(state() == sandbox_state::running);
  // A cut into the past is the end.
  BOOST_REQUIRE(set({15s}));
  now->advance(1s);
  BOOST_TEST(seen().cause == end_cause::time_to_live);
  auto late = set({60s});
  BOOST_REQUIRE(!late);
  BOOST_TEST(late.error().code == errc::expired);
  BOOST_TEST(late.error().message.find("time_to_live") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_clock_out_of_range_is_refused_with_field_value_and_limit) {
  auto refused = set({-1ms});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().code == errc::invalid_argument);
  BOOST_TEST(refused.error().message == "clocks: time_to_live is -1 ms; 0 to 31536000000");
  auto reply =
    now->ask<create_reply_ptr>(job,
                               create_batch{{{{}, small_environment(), {0ms, clock_max + 1ms}}}});
  BOOST_REQUIRE(reply);
  const auto& made = (*reply)->sandboxes.front();
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.error().code == errc::invalid_argument);
  BOOST_TEST(made.error().message.find("rollout_budget") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_extension_that_was_recorded_and_not_told_is_told_by_the_next_life) {
  make({10s});
  auto answered = now->send<ack>(sandbox, set_clocks{{60s}});
  while (durable->load()->sandboxes.back().clocks.time_to_live != 60s)
    now->step(1);
  BOOST_TEST(!*answered);
  restart();
  BOOST_TEST(seen().clocks.time_to_live.count() == 60'000);
  now->advance(30s);
  BOOST_TEST(state() == sandbox_state::running);
  now->advance(31s);
  BOOST_TEST(seen().cause == end_cause::time_to_live);
}

BOOST_AUTO_TEST_CASE(clocks_go_on_while_no_process_of_the_node_lives) {
  make({10s, 5s});
  now->advance(1s);
  crash();
  time.advance_to(time.now() + 6s);
  restart();
  BOOST_TEST(info(id).state == sandbox_state::terminated);
  BOOST_TEST(info(id).cause == end_cause::rollout_budget);
}

BOOST_AUTO_TEST_CASE(a_time_to_live_counts_from_the_creation_also_of_one_that_starts_late) {
  auto sent = now->send<create_reply_ptr>(job, create_batch{{{{}, small_environment(), {10s}}}});
  while (!*sent)
    now->step(1);
  id = *(**sent)->get()->sandboxes.front();
  now.reset();
  job = nullptr;
  sandbox = nullptr;
  time.advance_to(time.now() + 8s);
  start();
  now->advance(1s);
  sandbox = find(id);
  job = open("train");
  BOOST_TEST(state() == sandbox_state::running);
  BOOST_TEST(stats().time_to_live_left.count() < 2'000);
  now->advance(2s);
  BOOST_TEST(seen().cause == end_cause::time_to_live);
}

BOOST_AUTO_TEST_CASE(one_that_nobody_uses_is_reclaimed_and_the_next_request_brings_it_back) {
  make(idle(5s, idle_action::reclaim));
  for (int cycle = 0; cycle < 3; ++cycle) {
    now->advance(4900ms);
    BOOST_TEST(state() == sandbox_state::running);
    now->advance(2s);
    BOOST_TEST(state() == sandbox_state::reclaimed);
    now->advance(1min);
    BOOST_TEST(run({"exit", "0"}));
    BOOST_TEST(state() == sandbox_state::running);
    BOOST_TEST((seen().clocks == idle(5s, idle_action::reclaim)));
  }
}

BOOST_AUTO_TEST_CASE(a_silent_command_is_use_and_the_time_begins_with_its_end) {
  make(idle(5s, idle_action::stop));
  BOOST_TEST(run({"think-ms", "30000"}));
  now->advance(4900ms);
  BOOST_TEST(state() == sandbox_state::running);
  now->advance(1s);
  BOOST_TEST(seen().state == sandbox_state::terminated);
  BOOST_TEST(seen().cause == end_cause::idle);
  BOOST_TEST(seen().detail == "nobody used it for 5000 ms");
}

BOOST_AUTO_TEST_CASE(a_pause_by_somebody_else_is_not_idleness) {
  make(idle(5s, idle_action::stop));
  now->advance(4s);
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{}));
  now->advance(1min);
  BOOST_TEST(state() == sandbox_state::paused);
  BOOST_REQUIRE(now->ask<ack>(sandbox, resume_request{}));
  now->advance(4900ms);
  BOOST_TEST(state() == sandbox_state::running);
  now->advance(1s);
  BOOST_TEST(seen().cause == end_cause::idle);
}

BOOST_AUTO_TEST_CASE(an_idle_time_out_that_is_set_later_holds_from_the_last_use) {
  make({});
  now->advance(4s);
  BOOST_REQUIRE(set(idle(5s, idle_action::stop)));
  now->advance(2s);
  BOOST_TEST(state() == sandbox_state::running);
  BOOST_REQUIRE(set(idle(10s, idle_action::stop)));
  now->advance(5s);
  BOOST_TEST(state() == sandbox_state::running);
  now->advance(5s);
  BOOST_TEST(seen().cause == end_cause::idle);
}

BOOST_AUTO_TEST_CASE(a_command_of_an_earlier_life_is_use_though_nobody_asks_for_it) {
  make(idle(5s, idle_action::stop));
  now->send<exec_result_ptr>(sandbox, command({"think-ms", "60000"}, 1));
  now->advance(1s);
  restart();
  now->advance(50s);
  BOOST_TEST(state() == sandbox_state::running);
  auto joined = run({"think-ms", "60000"}, 1);
  BOOST_REQUIRE(joined);
  BOOST_TEST((*joined)->outcome.kind == outcome_kind::exited);
  now->advance(6s);
  BOOST_TEST(seen().cause == end_cause::idle);
}

BOOST_AUTO_TEST_CASE(an_outcome_that_nobody_asks_for_any_more_is_no_use) {
  make(idle(5s, idle_action::stop));
  now->send<exec_result_ptr>(sandbox, command({"think-ms", "2000"}, 1));
  now->advance(1s);
  restart();
  now->advance(7s);
  BOOST_TEST(info(id).cause == end_cause::idle);
}

BOOST_AUTO_TEST_CASE(idleness_is_decided_again_after_a_restart_in_the_middle_of_its_end) {
  make(idle(5s, idle_action::stop));
  now->advance(4990ms);
  while (durable->load()->sandboxes.back().is == sandbox_state::running)
    now->advance(1ms);
  restart();
  now->advance(1s);
  BOOST_TEST(info(id).state == sandbox_state::terminated);
  BOOST_TEST(info(id).cause == end_cause::idle);
}

BOOST_AUTO_TEST_SUITE_END()
