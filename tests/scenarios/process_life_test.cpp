// A background process lives by itself, and ends with all that it has started.
#include "tests/scenarios/process_rig.hpp"

#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

BOOST_AUTO_TEST_SUITE(process_life, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_process_is_started_listed_awaited_and_removed, exec_rig) {
  auto box = create();
  auto process = value(box.spawn(with_input("read code; exit $code", "worker")));
  auto all = value(box.processes());
  BOOST_TEST_REQUIRE(all.size() == 1u);
  BOOST_TEST(all[0].id == process.id());
  BOOST_TEST(all[0].name == "worker");
  BOOST_TEST(all[0].argv.size() == 3u);
  BOOST_TEST(!all[0].has_terminal);
  BOOST_TEST(!all[0].outcome.has_value());
  BOOST_TEST(value(box.find_process("worker")).id() == process.id());
  BOOST_TEST((error_of(process.remove()).code == errc::invalid_state));
  auto early = process.wait();
  done(process.write("7\n"));
  BOOST_TEST(value(early).outcome.code == 7);
  BOOST_TEST(value(process.wait()).outcome.code == 7);
  all = value(box.processes());
  BOOST_TEST_REQUIRE(all.size() == 1u);
  BOOST_TEST_REQUIRE(all[0].outcome.has_value());
  BOOST_TEST(all[0].outcome->code == 7);
  BOOST_TEST(all[0].ended_ms >= all[0].started_ms);
  done(process.remove());
  BOOST_TEST(value(box.processes()).empty());
  BOOST_TEST((error_of(process.wait()).code == errc::not_found));
  BOOST_TEST((error_of(box.find_process("worker")).code == errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(a_name_is_free_again_when_its_process_has_ended, exec_rig) {
  auto box = create();
  auto first = value(box.spawn(background("sleep 600", "job")));
  BOOST_TEST((error_of(box.spawn(background("true", "job"))).code == errc::invalid_state));
  done(first.kill());
  BOOST_TEST((value(first.wait()).outcome.kind == outcome_kind::cancelled));
  auto second = value(box.spawn(background("exit 4", "job")));
  BOOST_TEST(value(second.wait()).outcome.code == 4);
  BOOST_TEST(value(box.find_process("job")).id() == second.id());
  auto bad = error_of(box.spawn(background("true", "a name")));
  BOOST_TEST((bad.code == errc::invalid_argument), bad.message);
  BOOST_TEST((error_of(box.spawn(session({"sh"}, "", {0, 80}))).code == errc::invalid_argument));
  BOOST_TEST((error_of(box.spawn(session({"no-such-program"}))).code == errc::no_program));
}

BOOST_FIXTURE_TEST_CASE(the_whole_tree_is_gone_when_the_main_process_ends, exec_rig) {
  auto box = create();
  auto process = value(box.spawn(with_input(
    "(setsid sh -c 'sleep 601 & sleep 602' &); (sleep 603 &) ; setsid sleep 604 & echo up; "
    "read word")));
  auto seen = std::make_shared<watcher>();
  auto attached = process.attach(seen);
  BOOST_TEST_REQUIRE(seen->sees("up"));
  BOOST_TEST(comes_to(box, "sleep", 4, 20s));
  done(process.write("\n"));
  BOOST_TEST(value(process.wait()).outcome.code == 0);
  // It is over when they are gone, zombies of PID 1 apart, which nobody is told of.
  BOOST_TEST(falls_silent(box, 5s));
  done(attached.ended());
}

BOOST_FIXTURE_TEST_CASE(signals_reach_the_main_process_or_the_tree, exec_rig) {
  auto box = create();
  auto process = value(box.spawn(background(
    "trap 'echo main' USR1; setsid sh -c 'trap \"echo child\" USR1; echo up; while :; do sleep "
    "0.02; done' & while :; do sleep 0.02; done")));
  auto seen = std::make_shared<watcher>();
  auto attached = process.attach(seen);
  BOOST_TEST_REQUIRE(seen->sees("up"));
  done(process.signal(SIGUSR1));
  BOOST_TEST_REQUIRE(seen->sees("main"));
  BOOST_TEST(seen->out() == "up\nmain\n");
  done(process.signal(SIGUSR1, true));
  BOOST_TEST(seen->sees("child"));
  BOOST_TEST((error_of(process.signal(99)).code == errc::invalid_argument));
  done(process.signal(SIGKILL));
  auto x = value(process.wait());
  BOOST_TEST((x.outcome.kind == outcome_kind::signalled));
  BOOST_TEST(x.outcome.code == SIGKILL);
  BOOST_TEST((error_of(process.signal(SIGUSR1)).code == errc::invalid_state));
  done(process.kill());
  BOOST_TEST(falls_silent(box, 5s));
}

BOOST_FIXTURE_TEST_CASE(so_many_processes_are_kept_and_no_more_live, exec_rig) {
  auto from = at.environment();
  from.limits.processes = 1000;
  auto box = create(from);
  std::vector<future<process>> made;
  for (std::size_t i = 0; i < processes_kept_max; ++i)
    made.push_back(box.spawn(with_input("read word", "p" + std::to_string(i))));
  for (auto& each : made)
    value(each);
  auto full = error_of(box.spawn(background("true")));
  BOOST_TEST((full.code == errc::exhausted), full.message);
  // Commands are not processes.
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  auto first = value(made[0]);
  done(first.kill());
  value(first.wait());
  auto next = value(box.spawn(background("true", "next")));
  value(next.wait());
  auto all = value(box.processes());
  BOOST_TEST(all.size() == processes_kept_max);
  BOOST_TEST(all.front().name == "p1");
  BOOST_TEST(all.back().name == "next");
}

BOOST_FIXTURE_TEST_CASE(a_pause_stands_a_session_still_and_input_brings_it_back, exec_rig) {
  auto box = create();
  auto shell = value(box.spawn(session({"sh"})));
  auto seen = std::make_shared<watcher>();
  auto attached = shell.attach(seen);
  done(shell.write("echo $((20+1))\n"));
  BOOST_TEST_REQUIRE(seen->sees("21\r\n"));
  done(box.pause(true));
  // None of these thaws.
  BOOST_TEST(value(box.processes()).size() == 1u);
  auto again = std::make_shared<watcher>();
  auto second = shell.attach(again);
  BOOST_TEST(again->sees("21\r\n"));
  auto waiting = shell.wait();
  BOOST_TEST((error_of(shell.remove()).code == errc::invalid_state));
  BOOST_TEST((value(box.info()).state == sandbox_state::reclaimed));
  done(shell.write("echo $((20+2)); exit 9\n"));
  BOOST_TEST(again->sees("22\r\n"));
  BOOST_TEST(value(waiting).outcome.code == 9);
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
}

BOOST_FIXTURE_TEST_CASE(a_process_that_lives_is_use_of_its_sandbox_and_told_among_the_events,
                        exec_rig) {
  auto owner = value(rt->open_job("used", {{0ms, 0ms}}));
  create_options wanted;
  wanted.environment = at.environment();
  wanted.clocks.idle_timeout = 500ms;
  auto box = value(owner.create(wanted));
  auto other = create();
  auto process = value(box.spawn(with_input("read word")));
  // Three times as long as it may be unused.
  BOOST_TEST(value(other.exec(exec_spec{{"usleep", "1500000"}})).ok());
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
  done(process.write("x\n"));
  BOOST_TEST(value(process.wait()).outcome.code == 0);
  auto count = [&](event_kind kind) {
    auto page = value(owner.events());
    return std::ranges::count_if(page.events, [&](const job_event& x) {
      return x.kind == kind && x.sandbox == box.id() && x.exec == process.id();
    });
  };
  // An event is not waited for by what it tells of.
  BOOST_TEST(bench::ask_until(bench::within(20s), 10ms,
                              [&] { return count(event_kind::process_ended) == 1; }));
  BOOST_TEST(count(event_kind::process_started) == 1);
}

BOOST_FIXTURE_TEST_CASE(the_end_of_the_sandbox_answers_everybody, exec_rig) {
  auto box = create();
  auto process = value(box.spawn(background("echo up; sleep 600")));
  auto seen = std::make_shared<watcher>();
  auto attached = process.attach(seen);
  BOOST_TEST_REQUIRE(seen->sees("up"));
  std::vector<future<exec_result>> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.push_back(process.wait());
  done(box.stop());
  for (auto& each : waiting)
    BOOST_TEST((value(each).outcome.kind == outcome_kind::sandbox_stopped));
  // Its streams ended with it, or could not any more.
  if (auto shown = attached.ended().get(); !shown)
    BOOST_TEST((shown.error().code == errc::invalid_state));
  BOOST_TEST((value(process.wait()).outcome.kind == outcome_kind::sandbox_stopped));
  BOOST_TEST((error_of(box.spawn(background("true"))).code == errc::invalid_state));
}

BOOST_AUTO_TEST_SUITE_END()
