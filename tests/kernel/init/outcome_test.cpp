#define BOOST_TEST_MODULE init_outcome
#include "tests/kernel/init/fixture.hpp"

#include <csignal>

using namespace dsec;
using namespace dsec::test;

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_FIXTURE_TEST_SUITE(outcome, fixture)

BOOST_AUTO_TEST_CASE(killed_from_inside_is_signalled_and_exit_137_is_an_exit) {
  auto killed = client.shell("kill -9 $$");
  BOOST_TEST(killed.kind == kind::SIGNALLED);
  BOOST_TEST(killed.code == SIGKILL);
  auto exited = client.shell("exit 137");
  BOOST_TEST(exited.kind == kind::EXITED);
  BOOST_TEST(exited.code == 137);
}

BOOST_AUTO_TEST_CASE(the_main_process_at_the_memory_limit_is_oom_killed_with_limit_and_peak) {
  auto r = client.run({"wall_probe", "allocate", "300"});
  BOOST_TEST(r.kind == kind::OOM_KILLED);
  BOOST_TEST(r.limit_bytes == 128u << 20);
  BOOST_TEST(r.peak_bytes > 100u << 20);
  BOOST_TEST(r.oom_kills == 1u);
}

BOOST_AUTO_TEST_CASE(a_child_at_the_memory_limit_is_the_commands_own_affair) {
  auto r = client.shell("wall_probe allocate 300; exit 5");
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.code == 5);
  BOOST_TEST(r.oom_kills == 1u);
}

BOOST_AUTO_TEST_CASE(a_deadline_kills_the_whole_tree) {
  run_options options;
  options.deadline_ms = 300;
  auto r = client.shell("sleep 60 & setsid sleep 60 & sleep 60", options);
  BOOST_TEST(r.kind == kind::TIMED_OUT);
  BOOST_TEST(r.code == SIGKILL);
  BOOST_TEST(r.duration_ms >= 300);
  BOOST_TEST(r.duration_ms < 3000);
  BOOST_TEST(sandbox.payload_empties(2000));
}

BOOST_AUTO_TEST_CASE(a_deadline_shorter_than_the_start_still_ends_the_command) {
  run_options options;
  options.deadline_ms = 1;
  for (int i = 0; i < 20; ++i) {
    auto r = client.run({"sleep", "60"}, options);
    BOOST_TEST(r.kind == kind::TIMED_OUT);
    BOOST_TEST(r.duration_ms < 3000u);
  }
  BOOST_TEST(sandbox.payload_empties(2000));
}

BOOST_AUTO_TEST_CASE(cancel_kills_the_whole_tree) {
  auto exec = client.start(1, {"sh", "-c", "setsid sleep 60 & echo up; sleep 60"});
  while (sandbox.payload_pids().size() < 2)
    client.run({"true"});
  exec.cancelRequest().send().wait(client.scope());
  auto r = client.wait(exec);
  BOOST_TEST(r.kind == kind::CANCELLED);
  BOOST_TEST(r.out == "up\n");
  BOOST_TEST(sandbox.payload_empties(2000));
}

BOOST_AUTO_TEST_CASE(a_command_that_fails_on_a_full_disk_says_so) {
  auto r = client.shell("dd if=/dev/zero of=/tmp/fill bs=1M count=64");
  BOOST_TEST(r.kind == kind::DISK_FULL);
  BOOST_TEST(r.limit_bytes == 32u << 20);
  client.run({"rm", "/tmp/fill"});
  BOOST_TEST(client.shell("exit 1").kind == kind::EXITED);
}

BOOST_AUTO_TEST_CASE(a_sandbox_full_of_processes_starts_no_more) {
  auto bomb = client.shell("for i in $(seq 100); do sleep 60 & done; wait");
  BOOST_TEST(bomb.kind == kind::PIDS_LIMIT);
  auto held = sandbox.payload_pids().size();
  BOOST_TEST(held >= 60);
  // The children live on; only cancelling their exec ends them.
  if (held >= 64)
    BOOST_TEST(client.run({"true"}).kind == kind::PIDS_LIMIT);
}

BOOST_AUTO_TEST_CASE(a_dead_reaper_is_self_inflicted_and_leaves_a_tombstone) {
  auto exec = client.start(1, {"sleep", "60"});
  ::kill(sandbox.reaper(), SIGKILL);
  auto r = client.wait(exec);
  BOOST_TEST(r.kind == kind::SELF_INFLICTED);
  BOOST_TEST(r.cause == "PID 1 of the sandbox was ended by signal 9");
  BOOST_TEST(sandbox.tombstone(1000)
             == "self_inflicted\nPID 1 of the sandbox was ended by signal 9\n");
  BOOST_TEST(sandbox.supervisor_ended(3000));
}

BOOST_AUTO_TEST_SUITE_END()
