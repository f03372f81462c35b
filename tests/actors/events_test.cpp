#define BOOST_TEST_MODULE actors_events

#include "state/event_invariants.hpp"
#include "state/format.hpp"
#include "tests/actors/sandbox_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;
using strings = std::vector<std::string>;

namespace {

std::string in_short(const job_event& x) {
  auto text = fmt::format("{}", x.kind);
  if (x.step)
    text += fmt::format(" {}", *x.step);
  if (x.outcome)
    text += fmt::format(" {}", x.outcome->kind);
  if (x.cause != end_cause::none)
    text += fmt::format(" {}", x.cause);
  return text;
}

struct fixture : sandbox_fixture {
  std::vector<job_event> events(const std::string& of = "train") {
    auto page =
      now->ask<event_page_ptr>(now->actors().journal, load_events{job_id{of}, 1, 1'000'000});
    BOOST_REQUIRE(page);
    return (*page)->events;
  }

  strings told(const std::string& of = "train") {
    strings all;
    for (const auto& x : events(of))
      all.push_back(in_short(x));
    return all;
  }

  void expect_told(const strings& expected) {
    auto all = told();
    BOOST_TEST((all == expected), fmt::format("{}", fmt::join(all, ", ")));
    expect_agreement();
  }

  void expect_agreement() {
    auto state = durable->load();
    BOOST_REQUIRE(state);
    for (const auto& x : disagreements(*state, job_id{"train"}, events()))
      BOOST_ERROR(x);
  }

  void stop() {
    BOOST_REQUIRE(now->ask<ack>(sandbox, stop_request{}));
    now->advance(1s);
  }
};

/// Does the same from its beginning in every life, and dies a few times on the way.
struct dying_trainer : machine_fixture {
  explicit dying_trainer(std::uint64_t seed_of_all)
    : machine_fixture{seed_of_all},
      chance{seed_of_all} {}

  /// false: it is to die now.
  bool train() {
    auto job = now->send<job_actor>(now->actors().cluster, open_job{job_id{"train"}, {0ms, 0ms}});
    if (!arrives(job))
      return false;
    auto made = now->send<create_reply_ptr>(***job, create_batch{{{"k", small_environment()}}});
    if (!arrives(made))
      return false;
    auto found = now->send<find_reply>(now->actors().cluster,
                                       find_sandbox{*(**made)->get()->sandboxes.front()});
    if (!arrives(found))
      return false;
    auto box = (**found)->actor;
    if (!box)
      return true; // It was stopped before the last death.
    auto run = [&](strings argv, std::optional<std::uint64_t> step) {
      return arrives(now->send<exec_result_ptr>(box, command(std::move(argv), step)));
    };
    return run({"exit", "1"}, 1) && run({"exit", "0"}, {})
           && arrives(now->send<reclaim_report>(box, pause_request{true, false}))
           && run({"think-ms", "20"}, 2)
           && arrives(now->send<reclaim_report>(box, pause_request{false, false}))
           && arrives(now->send<ack>(box, stop_request{}));
  }

  template <class T>
  bool arrives(const answer<T>& x) {
    for (int i = 0; i < 100'000 && !*x; ++i) {
      now->step(1 + chance.below(12));
      if (deaths > 0 && chance.below(25) == 0) {
        --deaths;
        return false;
      }
      if (!*x)
        now->tick();
    }
    BOOST_TEST_REQUIRE(x->has_value());
    return true;
  }

  sim_random chance;
  int deaths = 6;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(events, fixture)

BOOST_AUTO_TEST_CASE(the_life_of_a_sandbox_is_told_in_order_and_names_it) {
  BOOST_REQUIRE(run({"exit", "3"}, 1));
  BOOST_REQUIRE(run({"exit", "0"}));
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  BOOST_REQUIRE(run({"exit", "0"}, 2));
  stop();
  expect_told({"created", "running", "exec_started 1", "exec_ended 1 exited", "exec_started",
               "exec_ended exited", "paused", "reclaimed", "exec_started 2", "resumed",
               "exec_ended 2 exited", "stopped stopped"});
  std::int64_t at_ms = 0;
  for (const auto& x : events()) {
    BOOST_TEST(x.sandbox == id);
    BOOST_TEST(x.index == 0u);
    BOOST_TEST(x.at_ms >= at_ms);
    at_ms = x.at_ms;
  }
  BOOST_TEST(events()[3].outcome->code == 3);
}

BOOST_AUTO_TEST_CASE(the_start_of_a_command_is_told_while_it_runs) {
  auto running = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}));
  now->advance(100ms);
  BOOST_TEST(!*running);
  BOOST_TEST(told().back() == "exec_started");
  BOOST_REQUIRE(now->wait(running));
  now->advance(10ms);
  BOOST_TEST(told().back() == "exec_ended exited");
}

BOOST_AUTO_TEST_CASE(a_command_that_the_stop_ended_is_told_before_the_stop) {
  auto step = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, 1));
  auto plain = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}));
  now->advance(50ms);
  stop();
  auto all = told();
  BOOST_TEST(all.back() == "stopped stopped");
  BOOST_TEST(std::ranges::count(all, "exec_ended sandbox_stopped") == 1);
  BOOST_TEST(std::ranges::count(all, "exec_ended 1 sandbox_stopped") == 1);
  expect_agreement();
}

BOOST_AUTO_TEST_CASE(what_never_ran_is_told_as_a_step_that_was_begun_or_not_at_all) {
  BOOST_REQUIRE(now->ask<reclaim_report>(sandbox, pause_request{true, false}));
  auto cancelled = now->send<exec_result_ptr>(sandbox, command({"exit", "0"}, {}, 1));
  now->settle();
  now->tell(sandbox, cancel_exec{1});
  BOOST_TEST((*now->wait(cancelled))->outcome.kind == outcome_kind::cancelled);
  now->advance(1s);
  auto all = told();
  BOOST_TEST(std::ranges::count(all, "exec_started")
             == std::ranges::count(all, "exec_ended cancelled"));
  expect_agreement();
}

BOOST_AUTO_TEST_CASE(a_broken_sandbox_is_told_as_failed_and_then_as_stopped_with_its_cause) {
  auto step = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, 1));
  now->advance(50ms);
  machine.kill_supervisor(id);
  now->advance(1min);
  expect_told({"created", "running", "exec_started 1", "failed infrastructure",
               "exec_ended 1 infrastructure", "stopped infrastructure"});
  for (const auto& x : events())
    if (x.kind == event_kind::failed || x.kind == event_kind::stopped)
      BOOST_TEST(x.detail == info(id).detail);
}

BOOST_AUTO_TEST_CASE(an_agent_that_destroys_its_sandbox_is_told_as_the_cause) {
  BOOST_REQUIRE(run({"self-destruct"}, 1));
  now->advance(1min);
  auto all = told();
  BOOST_TEST(all.back() == "stopped self_inflicted");
  BOOST_TEST(std::ranges::count(all, "failed self_inflicted") == 1);
  BOOST_TEST(std::ranges::count(all, "exec_ended 1 self_inflicted") == 1);
  expect_agreement();
}

BOOST_AUTO_TEST_CASE(a_start_that_failed_is_told_with_its_reason_and_never_as_running) {
  machine.faults.start_fails = 1000;
  auto made = now->ask<create_reply_ptr>(job, create_batch{{{"", small_environment()}}});
  BOOST_REQUIRE(made);
  now->advance(1min);
  strings second;
  for (const auto& x : events())
    if (x.index == 1)
      second.push_back(in_short(x));
  BOOST_TEST((second == strings{"created", "failed start_failed", "stopped start_failed"}));
  BOOST_TEST(!events().back().detail.empty());
}

BOOST_AUTO_TEST_CASE(what_a_lease_did_while_no_process_lived_is_told_by_the_next_one) {
  lease_terms lease{1s, 5s};
  create(open("brief", lease));
  crash();
  time.advance_to(time.now() + 2s);
  restart();
  now->advance(100ms);
  BOOST_TEST((told("brief") == strings{"created", "running", "reclaimed"}));
  crash();
  time.advance_to(time.now() + 10s);
  restart();
  now->advance(1min);
  BOOST_TEST((told("brief")
              == strings{"created", "running", "reclaimed", "failed lease_expired",
                         "stopped lease_expired"}));
}

BOOST_AUTO_TEST_CASE(a_step_that_ran_through_a_crash_ends_once_it_is_asked_for_again) {
  auto lost = now->send<exec_result_ptr>(sandbox, command({"think-ms", "500"}, 1));
  now->advance(100ms);
  restart();
  now->advance(1s);
  expect_told({"created", "running", "exec_started 1"});
  BOOST_REQUIRE(run({"think-ms", "500"}, 1));
  expect_told({"created", "running", "exec_started 1", "exec_ended 1 exited"});
}

BOOST_AUTO_TEST_CASE(a_step_that_nobody_asks_for_again_ends_with_its_sandbox) {
  auto lost = now->send<exec_result_ptr>(sandbox, command({"think-ms", "9000"}, 1));
  now->advance(100ms);
  restart();
  stop();
  expect_told(
    {"created", "running", "exec_started 1", "exec_ended 1 sandbox_stopped", "stopped stopped"});
}

BOOST_AUTO_TEST_CASE(whenever_the_process_dies_nothing_is_told_twice_or_missing) {
  for (std::uint64_t number = 1; number <= 200; ++number) {
    BOOST_TEST_CONTEXT("seed " << number) {
      dying_trainer trainer{number};
      while (!trainer.train()) {
        trainer.crash();
        trainer.start();
      }
      trainer.now->advance(1min);
      auto state = trainer.durable->load();
      auto page = trainer.durable->events(job_id{"train"}, 1, 1'000);
      BOOST_REQUIRE(state);
      BOOST_REQUIRE(page);
      for (const auto& x : disagreements(*state, job_id{"train"}, page->events))
        BOOST_ERROR(x);
      BOOST_TEST_REQUIRE(!page->events.empty());
      BOOST_TEST(in_short(page->events.back()) == "stopped stopped");
    }
  }
}

BOOST_AUTO_TEST_CASE(events_outlive_the_tombstones_of_their_sandboxes) {
  now.reset();
  options.tombstones = 0;
  start();
  job = open("train");
  sandbox = find(id);
  stop();
  auto gone = now->ask<find_reply>(now->actors().cluster, find_sandbox{id});
  BOOST_REQUIRE(!gone);
  BOOST_TEST(gone.error().code == errc::not_found);
  BOOST_TEST(told().back() == "stopped stopped");
}

BOOST_AUTO_TEST_CASE(a_closed_job_that_is_opened_again_forgets_its_events_and_goes_on_counting) {
  BOOST_REQUIRE(now->ask<ack>(job, stop_request{}));
  auto last = events().back();
  BOOST_TEST(in_short(last) == "stopped stopped");
  job = open("train");
  BOOST_TEST(events().empty());
  create(job);
  BOOST_TEST(events().front().kind == event_kind::created);
  BOOST_TEST(events().front().cursor == last.cursor + 1);
}

BOOST_AUTO_TEST_CASE(each_job_has_its_own_events) {
  auto other = open("other");
  create(other);
  stop();
  BOOST_TEST((told("other") == strings{"created", "running"}));
  expect_told({"created", "running", "stopped stopped"});
}

BOOST_AUTO_TEST_SUITE_END()
