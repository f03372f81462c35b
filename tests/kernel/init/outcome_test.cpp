#define BOOST_TEST_MODULE init_outcome
#include "backends/init/oom_log.hpp"
#include "tests/kernel/init/fixture.hpp"

#include <sys/resource.h>

#include <csignal>

using namespace dsec;
using namespace dsec::test;

namespace {

/// Precondition: the kernel's log can be read, and speaks of the pids that are seen here.
boost::test_tools::assertion_result log_readable(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result answer{init::oom_log::open().get() >= 0};
  answer.message() << "skipped: /dev/kmsg cannot be read in the first pid namespace";
  return answer;
}

struct without_log : fixture {
  without_log() : fixture{{.kernel_log = false}} {}
};

/// Starts a command that waits for `let_go` before it runs `then`, without a fork.
struct gated {
  gated(init_client& at, std::uint64_t id, const std::string& then)
    : client{at},
      gate{"/tmp/gate" + std::to_string(id)} {
    client.run({"mkfifo", gate});
    exec = client.start(id, {"sh", "-c", "read x < " + gate + "; " + then});
  }

  run_result let_go() {
    client.shell("echo > " + gate);
    return client.wait(exec);
  }

  init_client& client;
  std::string gate;
  wire::Exec::Client exec = nullptr;
};

} // namespace

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
  BOOST_TEST(r.cause.find("killed wall_probe (pid ") == 0u, r.cause);
}

BOOST_AUTO_TEST_CASE(kill_9_beside_an_oom_kill_of_another_command_is_signalled) {
  gated other{client, 1, "kill -9 $$"};
  BOOST_TEST(client.run({"wall_probe", "allocate", "300"}).kind == kind::OOM_KILLED);
  const auto r = other.let_go();
  BOOST_TEST(r.kind == kind::SIGNALLED);
  BOOST_TEST(r.code == SIGKILL);
  BOOST_TEST(r.oom_kills == 0u);
}

BOOST_AUTO_TEST_CASE(kill_9_after_an_oom_kill_of_ones_own_child_is_signalled,
                     *boost::unit_test::precondition(log_readable)) {
  const auto r = client.shell("wall_probe allocate 300; kill -9 $$");
  BOOST_TEST(r.kind == kind::SIGNALLED);
  BOOST_TEST(r.code == SIGKILL);
  BOOST_TEST(r.oom_kills == 1u);
  BOOST_TEST(r.cause == "");
}

BOOST_FIXTURE_TEST_CASE(an_unreadable_kernel_log_leaves_the_counters_and_is_told, without_log) {
  const auto r = client.run({"wall_probe", "allocate", "300"});
  BOOST_TEST(r.kind == kind::OOM_KILLED);
  BOOST_TEST(r.oom_kills == 1u);
  BOOST_TEST(r.cause.find("killed 'wall_probe' (pid ") == 0u, r.cause);
  BOOST_TEST(r.cause.find("the kernel's log cannot tell") != std::string::npos, r.cause);
  gated other{client, 1, "kill -9 $$"};
  BOOST_TEST(client.run({"wall_probe", "allocate", "300"}).kind == kind::OOM_KILLED);
  BOOST_TEST(other.let_go().kind == kind::SIGNALLED);
}

BOOST_AUTO_TEST_CASE(a_background_child_of_an_earlier_command_that_is_oom_killed_is_nobody_elses) {
  client.run({"mkfifo", "/tmp/go", "/tmp/gone"});
  client.shell("(read x < /tmp/go; wall_probe allocate 300; echo > /tmp/gone) > /dev/null 2>&1 &");
  const auto r = client.shell("echo > /tmp/go; read x < /tmp/gone; kill -9 $$");
  BOOST_TEST(r.kind == kind::SIGNALLED);
  BOOST_TEST(r.oom_kills == 0u);
}

BOOST_AUTO_TEST_CASE(more_commands_at_once_than_accounts_still_have_their_own_causes,
                     *boost::unit_test::precondition(log_readable)) {
  std::vector<gated> many;
  for (std::uint64_t id = 1; id <= 24; ++id)
    many.emplace_back(client, id, id % 2 ? "exec wall_probe allocate 300" : "kill -9 $$");
  for (std::size_t i = 0; i < many.size(); ++i) {
    const auto r = many[i].let_go();
    BOOST_TEST(r.kind == (i % 2 ? kind::SIGNALLED : kind::OOM_KILLED), i << ": " << r.cause);
  }
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

BOOST_AUTO_TEST_CASE(who_fails_beside_a_full_disk_for_another_reason_is_not_blamed_on_it) {
  gated other{client, 1, "exit 7"};
  const auto filled = client.shell("dd if=/dev/zero of=/tmp/fill bs=1M count=64");
  BOOST_TEST(filled.kind == kind::DISK_FULL);
  BOOST_TEST(filled.code == 1);
  const auto beside = other.let_go();
  BOOST_TEST(beside.kind == kind::EXITED);
  BOOST_TEST(beside.code == 7);
  BOOST_TEST(client.shell("exit 137").kind == kind::EXITED);
  BOOST_TEST(client.shell("dd if=/dev/zero of=/tmp/more bs=1M count=1").kind == kind::DISK_FULL);
}

BOOST_AUTO_TEST_CASE(a_command_that_fills_the_disk_in_silence_is_blamed_if_it_ran_alone) {
  BOOST_TEST(client.shell("dd if=/dev/zero of=/tmp/fill bs=1M count=64 2>/dev/null").kind
             == kind::DISK_FULL);
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

BOOST_AUTO_TEST_CASE(a_fork_that_another_command_was_refused_is_nobodys_failure) {
  client.run({"mkfifo", "/tmp/go", "/tmp/bombed"});
  auto other = client.start(1, {"sh", "-c", "read x < /tmp/go; exit 9"});
  auto opener = client.start(2, {"sh", "-c", "read x < /tmp/bombed; echo > /tmp/go"});
  const auto bomb =
    client.shell("(while :; do sleep 60 & done) 2>/dev/null; echo > /tmp/bombed; exit 3");
  BOOST_TEST(bomb.kind == kind::PIDS_LIMIT);
  BOOST_TEST(bomb.code == 3);
  const auto r = client.wait(other);
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.code == 9);
}

BOOST_AUTO_TEST_CASE(a_machine_without_a_process_to_give_is_not_the_sandboxs_limit) {
  const rlimit none{0, 0};
  BOOST_TEST_REQUIRE(::prlimit(sandbox.reaper(), RLIMIT_NPROC, &none, nullptr) == 0);
  const auto e = error_of([&] { client.run({"true"}); });
  BOOST_TEST((e.code == errc::unavailable), e.message);
  BOOST_TEST(e.message.find("start 'true': the machine gives no process") == 0u, e.message);
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

BOOST_AUTO_TEST_CASE(a_command_that_comes_when_the_reaper_is_dead_already_is_self_inflicted_too) {
  client.run({"true"});
  // dsec-init hears of both at once.
  ::kill(sandbox.supervisor(), SIGSTOP);
  ::kill(sandbox.reaper(), SIGKILL);
  auto collected = client.collect(1, {"true"});
  kj::evalLast([] {}).wait(client.scope());
  ::kill(sandbox.supervisor(), SIGCONT);
  try {
    const auto r = client.wait(kj::mv(collected));
    BOOST_TEST(r.kind == kind::SELF_INFLICTED);
    BOOST_TEST(r.cause == "PID 1 of the sandbox was ended by signal 9");
  } catch (const kj::Exception& e) {
    // It came when everybody had been told: the tombstone answers for dsec-init then.
    BOOST_TEST((e.getType() == kj::Exception::Type::DISCONNECTED), e.getDescription().cStr());
  }
  BOOST_TEST(sandbox.tombstone(1000)
             == "self_inflicted\nPID 1 of the sandbox was ended by signal 9\n");
}

BOOST_AUTO_TEST_SUITE_END()
