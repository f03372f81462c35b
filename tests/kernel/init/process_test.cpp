// What dsec-init keeps of processes: their output, their input, their tree, and their end.
#define BOOST_TEST_MODULE init_process
#include "tests/kernel/init/processes.hpp"

#include <chrono>
#include <csignal>
#include <numeric>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

BOOST_AUTO_TEST_SUITE(processes, *utf::precondition(possible))

BOOST_FIXTURE_TEST_CASE(a_process_outlives_the_connection_that_started_it, processes_fixture) {
  {
    init_client first{io, sandbox.socket_path()};
    spawn_options wanted;
    wanted.name = "keeper";
    wanted.keep_input = true;
    spawn_from(first, 7, {"/bin/sh", "-c", "echo early; read word; echo $word; exit 3"}, wanted);
  }
  // As a node that was restarted comes in.
  init_client next{io, sandbox.socket_path(), 2};
  auto hello = next.entered();
  BOOST_TEST(hello.getHello().getExecs().size() == 0u);
  auto all = next.init().processesRequest().send().wait(io.waitScope);
  BOOST_TEST_REQUIRE(all.getProcesses().size() == 1u);
  auto info = all.getProcesses()[0];
  BOOST_TEST(info.getId() == 7u);
  BOOST_TEST(std::string{info.getName()} == "keeper");
  BOOST_TEST(info.getStartedMs() > 0);
  BOOST_TEST(info.getEndedMs() == 0);
  auto request = next.init().processRequest();
  request.setId(7);
  auto process = request.send().getProcess();
  input(process, "late\n");
  auto x = wait(process);
  BOOST_TEST(x.kind == kind::EXITED);
  BOOST_TEST(x.code == 3);
  BOOST_TEST(x.out == "early\nlate\n");
}

BOOST_FIXTURE_TEST_CASE(the_last_bytes_are_kept_and_what_is_lost_is_told, processes_fixture) {
  spawn_options wanted;
  wanted.command.spool_bytes = 1000;
  auto process =
    shell(1, "i=0; while [ $i -lt 2000 ]; do printf '%09d\\n' $i; i=$((i+1)); done", wanted);
  auto x = wait(process);
  BOOST_TEST(x.out_bytes == 20'000u);
  BOOST_TEST(x.out.size() == 1000u);
  BOOST_TEST(x.out.substr(0, 10) == "000001900\n");
  BOOST_TEST(x.out.substr(990) == "000001999\n");
  seen out, err;
  attach(process, out, err).wait(io.waitScope);
  BOOST_TEST(out.skipped == 19'000u);
  BOOST_TEST((out.bytes == x.out));
  BOOST_TEST(out.ended);
  BOOST_TEST(err.ended);
}

BOOST_FIXTURE_TEST_CASE(a_reader_that_is_stuck_holds_back_nobody, processes_fixture) {
  auto process = shell(1, "dd if=/dev/zero bs=65536 count=1024 2>/dev/null; echo done >&2");
  seen stuck, stuck_err, live, live_err;
  auto never = attach(process, stuck, stuck_err, wire::AttachFrom::START, true);
  auto all = attach(process, live, live_err);
  all.wait(io.waitScope);
  BOOST_TEST(live.bytes.size() + live.skipped == 64u << 20);
  BOOST_TEST(live_err.bytes == "done\n");
  BOOST_TEST(wait(process).kind == kind::EXITED);
  // It was sent little more than it took.
  BOOST_TEST(stuck.bytes.size() <= 256u << 10);
}

BOOST_FIXTURE_TEST_CASE(a_process_that_never_stops_writing_does_not_keep_others_from_being_heard,
                        processes_fixture) {
  for (std::uint64_t id = 1; id <= 4; ++id)
    spawn(id, {"/bin/busybox", "yes"});
  const auto before = std::chrono::steady_clock::now();
  BOOST_TEST(client.shell("echo here").out == "here\n");
  auto process = find(1);
  seen out, err;
  auto watching = attach(process, out, err, wire::AttachFrom::TAIL);
  BOOST_TEST(comes(out, "y\n"));
  BOOST_TEST((std::chrono::steady_clock::now() - before < std::chrono::seconds{1}));
}

BOOST_FIXTURE_TEST_CASE(when_the_main_process_ends_its_whole_tree_is_gone, processes_fixture) {
  auto process =
    shell(1,
          "(setsid sleep 601 >/dev/null 2>&1 &) ; setsid sh -c 'sleep 602 & echo inner; "
          "sleep 603' & sleep 604 & echo ready; read word",
          {.keep_input = true});
  seen out, err;
  auto watching = attach(process, out, err);
  BOOST_TEST_REQUIRE(comes(out, "ready"));
  BOOST_TEST_REQUIRE(comes(out, "inner"));
  BOOST_TEST(sandbox.payload_pids().size() >= 5u);
  input(process, "go\n");
  BOOST_TEST(wait(process).kind == kind::EXITED);
  // Told when they are gone, so no waiting.
  BOOST_TEST(sandbox.payload_pids().empty());
}

BOOST_FIXTURE_TEST_CASE(a_signal_goes_to_the_main_process_or_to_every_process, processes_fixture) {
  const auto script = "trap 'echo main; exit 0' USR1; "
                      "setsid sh -c 'trap \"echo child\" USR1; echo up; "
                      "while :; do sleep 0.02; done' & while :; do sleep 0.02; done";
  auto one = shell(1, script);
  seen out, err;
  auto watching = attach(one, out, err);
  BOOST_TEST_REQUIRE(comes(out, "up"));
  signal(one, SIGUSR1);
  BOOST_TEST(wait(one).out == "up\nmain\n");

  auto two = shell(2, "trap : USR1; setsid sh -c 'trap \"echo child; kill -9 $$\" USR1; echo up; "
                      "while :; do sleep 0.02; done' & while :; do sleep 0.02; done");
  seen both, both_err;
  auto also = attach(two, both, both_err);
  BOOST_TEST_REQUIRE(comes(both, "up"));
  signal(two, SIGUSR1, true);
  BOOST_TEST(comes(both, "child"));
  kill(two);
  BOOST_TEST(wait(two).kind == kind::CANCELLED);
  auto late = error_of([&] { signal(two, SIGUSR1); });
  BOOST_TEST((late.code == errc::invalid_state), late.message);
}

BOOST_FIXTURE_TEST_CASE(input_waits_for_the_reader_and_says_when_there_is_none, processes_fixture) {
  auto process = shell(1,
                       "read first; echo got $first; exec <&-; echo closed; read -t 600 never < "
                       "/dev/zero; sleep 600",
                       {.keep_input = true});
  seen out, err;
  auto watching = attach(process, out, err);
  input(process, "one\n");
  BOOST_TEST_REQUIRE(comes(out, "closed"));
  auto gone = error_of([&] { input(process, "two\n"); });
  BOOST_TEST((gone.code == errc::invalid_state), gone.message);
  kill(process);
  wait(process);
  auto over = error_of([&] { input(process, "three\n"); });
  BOOST_TEST((over.code == errc::invalid_state), over.message);
}

BOOST_FIXTURE_TEST_CASE(the_bytes_it_starts_with_come_first_and_end_without_open_input,
                        processes_fixture) {
  auto closed = spawn(1, {"/bin/busybox", "cat"}, {.input = "all there is"});
  BOOST_TEST(wait(closed).out == "all there is");
  auto open = spawn(2, {"/bin/busybox", "cat"}, {.input = "first ", .keep_input = true});
  input(open, "second", true);
  BOOST_TEST(wait(open).out == "first second");
  auto none = spawn(3, {"/bin/busybox", "cat"});
  BOOST_TEST(wait(none).out == "");
}

BOOST_FIXTURE_TEST_CASE(a_name_is_one_process_that_lives, processes_fixture) {
  auto first = spawn(1, {"/bin/busybox", "sleep", "600"}, {.name = "x"});
  auto taken = error_of([&] { spawn(2, {"/bin/busybox", "true"}, {.name = "x"}); });
  BOOST_TEST((taken.code == errc::invalid_state), taken.message);
  auto alive = error_of([&] { remove(first); });
  BOOST_TEST((alive.code == errc::invalid_state), alive.message);
  kill(first);
  wait(first);
  auto second = spawn(3, {"/bin/busybox", "true"}, {.name = "x"});
  BOOST_TEST(wait(second).kind == kind::EXITED);
  BOOST_TEST(ids() == (std::vector<std::uint64_t>{1, 3}), boost::test_tools::per_element());
  remove(first);
  BOOST_TEST(ids() == (std::vector<std::uint64_t>{3}), boost::test_tools::per_element());
  auto gone = error_of([&] { find(1); });
  BOOST_TEST((gone.code == errc::not_found), gone.message);
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_started_leaves_no_trace, processes_fixture) {
  auto none = error_of([&] { spawn(1, {"/bin/no-such-program"}); });
  BOOST_TEST((none.code == errc::no_program), none.message);
  auto nobody = error_of([&] { spawn(2, {"/bin/sh"}, {.command = {.user = "nobody-here"}}); });
  BOOST_TEST((nobody.code == errc::not_found), nobody.message);
  BOOST_TEST(ids().empty());
  auto process = spawn(1, {"/bin/busybox", "true"});
  BOOST_TEST(wait(process).code == 0);
}

BOOST_FIXTURE_TEST_CASE(what_is_still_told_of_a_refused_one_is_nothing_to_the_next_of_its_id,
                        processes_fixture) {
  for (int i = 0; i < 300; ++i) {
    auto none = error_of([&] { spawn(1, {"/bin/no-such-program"}); });
    BOOST_TEST((none.code == errc::no_program), none.message);
    auto process = shell(1, "exit 5");
    BOOST_TEST_REQUIRE(wait(process).code == 5);
    remove(process);
  }
}

BOOST_FIXTURE_TEST_CASE(of_those_that_have_ended_the_oldest_make_room, processes_fixture) {
  for (std::uint64_t id = 1; id <= 256; ++id) {
    auto process = spawn(id, {"/bin/busybox", "true"});
    wait(process);
  }
  BOOST_TEST(ids().size() == 256u);
  spawn(257, {"/bin/busybox", "true"});
  auto left = ids();
  BOOST_TEST(left.size() == 256u);
  BOOST_TEST(left.front() == 2u);
  BOOST_TEST(left.back() == 257u);
}

BOOST_FIXTURE_TEST_CASE(a_deadline_ends_the_tree_and_stands_while_frozen, processes_fixture) {
  spawn_options wanted;
  wanted.command.deadline_ms = 300;
  auto process = shell(1, "sleep 600 & sleep 600", wanted);
  client.pause();
  auto late = error_of([&] { spawn(2, {"/bin/busybox", "true"}); });
  BOOST_TEST((late.code == errc::invalid_state), late.message);
  BOOST_TEST(ids().size() == 1u);
  client.resume();
  BOOST_TEST(wait(process).kind == kind::TIMED_OUT);
  BOOST_TEST(sandbox.payload_pids().empty());
}

BOOST_FIXTURE_TEST_CASE(output_that_somebody_else_holds_open_does_not_hold_the_end_back,
                        processes_fixture) {
  // A command of its own, outside of the process's tree, opens the process's output.
  auto process = shell(1, "echo $$; read word; echo last", {.keep_input = true});
  seen out, err;
  auto watching = attach(process, out, err);
  BOOST_TEST_REQUIRE(comes(out, "\n"));
  const auto pid = out.bytes.substr(0, out.bytes.find('\n'));
  auto holder = client.start(100, {"/bin/sh", "-c",
                                   "exec 3>/proc/" + pid + "/fd/1; echo holding; exec sleep 600"});
  BOOST_TEST(client
               .shell("while ! ls -l /proc/[0-9]*/fd/3 2>/dev/null | grep -q pipe; do sleep "
                      "0.01; done")
               .code
             == 0);
  input(process, "go\n");
  auto x = wait(process);
  BOOST_TEST(x.kind == kind::EXITED);
  BOOST_TEST(x.out == pid + "\nlast\n");
  watching.wait(io.waitScope);
  BOOST_TEST(out.ended);
  remove(process);
  client.cancel(100);
  client.wait(holder);
}

BOOST_AUTO_TEST_SUITE_END()
