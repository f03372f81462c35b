#define BOOST_TEST_MODULE init_exec
#include "tests/kernel/init/fixture.hpp"

#include <csignal>

using namespace dsec;
using namespace dsec::test;

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_FIXTURE_TEST_SUITE(exec, fixture)

BOOST_AUTO_TEST_CASE(output_and_exit_code_come_back) {
  auto r = client.shell("echo out; echo err >&2; exit 7");
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.code == 7);
  BOOST_TEST(r.out == "out\n");
  BOOST_TEST(r.err == "err\n");
}

BOOST_AUTO_TEST_CASE(output_is_exact_to_the_byte) {
  std::string all;
  for (int round = 0; round < 300; ++round)
    for (int c = 0; c < 256; ++c)
      all.push_back(static_cast<char>(c));
  client.write_file("/tmp/bytes", all);
  auto r = client.run({"cat", "/tmp/bytes"});
  BOOST_TEST((r.out == all));
  BOOST_TEST(r.out_bytes == all.size());
}

BOOST_AUTO_TEST_CASE(arguments_environment_and_directory_arrive_unchanged) {
  run_options options;
  options.env = {"PATH=/bin", "ODD=a b\n\xff"};
  options.cwd = "/tmp";
  auto r = client.run({"sh", "-c", "echo \"$ODD\"; pwd; echo \"$1\"", "x", "two words"}, options);
  BOOST_TEST(r.out == "a b\n\xff\n/tmp\ntwo words\n");
}

BOOST_AUTO_TEST_CASE(commands_after_killed_ones_are_not_killed_with_them) {
  run_options late;
  late.deadline_ms = 20;
  // As many as would use every group again that a killed one has left.
  for (int round = 0; round < 4; ++round) {
    BOOST_TEST(client.run({"sleep", "60"}, late).kind == kind::TIMED_OUT);
    for (int i = 0; i < 3; ++i) {
      auto r = client.run({"echo", "well"});
      BOOST_TEST(r.kind == kind::EXITED);
      BOOST_TEST(r.out == "well\n");
    }
  }
}

BOOST_AUTO_TEST_CASE(standard_input_is_empty_unless_asked_for) {
  auto r = client.run({"wc", "-c"});
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.out == "0\n");
}

BOOST_AUTO_TEST_CASE(a_large_input_flows_with_back_pressure) {
  run_options options;
  options.has_stdin = true;
  auto exec = client.start(1, {"sh", "-c", "sleep 0.2; wc -c"}, options);
  auto sink = exec.stdinRequest().send().wait(client.scope()).getSink();
  std::string chunk(64 << 10, 'x');
  const int chunks = 160; // 10 MiB through a pipe of 64 KiB.
  for (int i = 0; i < chunks; ++i) {
    auto request = sink.writeRequest();
    request.setBytes({reinterpret_cast<const kj::byte*>(chunk.data()), chunk.size()});
    request.send().wait(client.scope());
  }
  sink.endRequest().send().wait(client.scope());
  auto r = client.wait(exec);
  BOOST_TEST(r.out == std::to_string(chunks * chunk.size()) + "\n");
}

BOOST_AUTO_TEST_CASE(writing_to_a_command_that_does_not_read_succeeds_once_it_is_gone) {
  run_options options;
  options.has_stdin = true;
  auto exec = client.start(1, {"sleep", "0.2"}, options);
  auto sink = exec.stdinRequest().send().wait(client.scope()).getSink();
  std::string chunk(64 << 10, 'x');
  for (int i = 0; i < 8; ++i) {
    auto request = sink.writeRequest();
    request.setBytes({reinterpret_cast<const kj::byte*>(chunk.data()), chunk.size()});
    request.send().wait(client.scope());
  }
  sink.endRequest().send().wait(client.scope());
  BOOST_TEST(client.wait(exec).code == 0);
}

BOOST_AUTO_TEST_CASE(a_writer_that_dies_ends_the_input) {
  run_options options;
  options.has_stdin = true;
  auto exec = client.start(1, {"wc", "-c"}, options);
  {
    auto sink = exec.stdinRequest().send().wait(client.scope()).getSink();
    auto request = sink.writeRequest();
    request.setBytes({reinterpret_cast<const kj::byte*>("abc"), 3});
    request.send().wait(client.scope());
  }
  BOOST_TEST(client.wait(exec).out == "3\n");
}

BOOST_AUTO_TEST_CASE(the_spool_keeps_the_first_bytes_and_counts_all) {
  run_options options;
  options.spool_bytes = 1000;
  auto r =
    client.shell("head -c 500000 /dev/zero | tr '\\0' a; head -c 3000 /dev/zero >&2", options);
  BOOST_TEST(r.out == std::string(1000, 'a'));
  BOOST_TEST(r.out_bytes == 500000);
  BOOST_TEST(r.err.size() == 1000);
  BOOST_TEST(r.err_bytes == 3000);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_holds_the_command_up_and_loses_nothing) {
  run_options options;
  options.spool_bytes = 10;
  auto exec =
    client.start(1, {"sh", "-c", "sleep 0.1; head -c 4000000 /dev/zero; echo end >&2"}, options);
  std::string out, err;
  auto attach = exec.attachRequest();
  attach.setStdout(kj::heap<collecting_sink>(out, &io.provider->getTimer(), 5 * kj::MILLISECONDS));
  attach.setStderr(kj::heap<collecting_sink>(err));
  attach.send().wait(client.scope());
  BOOST_TEST(out.size() == 4000000);
  BOOST_TEST(err == "end\n");
  auto r = client.wait(exec);
  BOOST_TEST(r.out_bytes == 4000000);
  BOOST_TEST(r.duration_ms >= 200); // 62 writes of 5 ms, of which a window is let ahead.
}

BOOST_AUTO_TEST_CASE(output_waits_for_a_reader_that_was_announced) {
  run_options options;
  options.spool_bytes = 10;
  options.attended = true;
  auto exec = client.start(1, {"head", "-c", "4000000", "/dev/zero"}, options);
  io.provider->getTimer().afterDelay(100 * kj::MILLISECONDS).wait(client.scope());
  std::string out, err;
  auto attach = exec.attachRequest();
  attach.setStdout(kj::heap<collecting_sink>(out));
  attach.setStderr(kj::heap<collecting_sink>(err));
  attach.send().wait(client.scope());
  BOOST_TEST(out.size() == 4000000);
  BOOST_TEST(client.wait(exec).out_bytes == 4000000);
}

BOOST_AUTO_TEST_CASE(a_reader_that_was_announced_and_never_comes_holds_nothing_up) {
  run_options options;
  options.spool_bytes = 10;
  options.attended = true;
  { auto exec = client.start(1, {"head", "-c", "4000000", "/dev/zero"}, options); }
  BOOST_TEST(client.wait(client.collect(1, {"true"})).out_bytes == 4000000);
}

BOOST_AUTO_TEST_CASE(a_late_reader_gets_the_spool) {
  auto exec = client.start(1, {"echo", "hello"});
  client.wait(exec);
  std::string out, err;
  auto attach = exec.attachRequest();
  attach.setStdout(kj::heap<collecting_sink>(out));
  attach.setStderr(kj::heap<collecting_sink>(err));
  attach.send().wait(client.scope());
  BOOST_TEST(out == "hello\n");
}

BOOST_AUTO_TEST_CASE(a_background_child_that_holds_the_output_does_not_hold_the_answer) {
  auto r = client.shell("sleep 30 & echo started");
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.out == "started\n");
  BOOST_TEST(r.duration_ms < 5000);
  BOOST_TEST(sandbox.payload_pids().size() == 1);
}

BOOST_AUTO_TEST_CASE(a_background_child_that_holds_the_output_does_not_hold_its_reader) {
  std::string out, err;
  run_options options;
  options.attended = true;
  options.spool_bytes = 100;
  auto exec =
    client.start(1, {"sh", "-c", "sleep 30 & head -c 300000 /dev/zero; echo end"}, options);
  auto attach = exec.attachRequest();
  attach.setStdout(kj::heap<collecting_sink>(out));
  attach.setStderr(kj::heap<collecting_sink>(err));
  auto streamed = attach.send();
  BOOST_TEST(client.wait(exec).out_bytes == 300004);
  streamed.wait(client.scope());
  BOOST_TEST(out.size() == 300004u);
  BOOST_TEST(out.ends_with("end\n"));
  BOOST_TEST(sandbox.payload_pids().size() == 1);
}

BOOST_AUTO_TEST_CASE(a_background_child_may_write_after_its_exec_was_forgotten) {
  auto exec = client.start(1, {"sh", "-c", "(sleep 0.3; echo late; touch /tmp/alive) & exit 0"});
  client.wait(exec);
  auto forget = client.init().forgetRequest();
  forget.initIds(1).set(0, 1);
  forget.send().wait(client.scope());
  exec = nullptr;
  auto r =
    client.shell("for i in $(seq 50); do test -e /tmp/alive && exit 0; sleep 0.1; done; exit 1");
  BOOST_TEST(r.code == 0);
}

BOOST_AUTO_TEST_CASE(an_id_runs_once_however_often_it_is_asked) {
  std::vector<std::string> argv{"sh", "-c", "echo x >> /tmp/count; cat /tmp/count"};
  auto first = client.start(1, argv);
  BOOST_TEST(client.wait(first).out == "x\n");
  auto again = client.start(1, argv);
  BOOST_TEST(client.wait(again).out == "x\n");
  BOOST_TEST(client.read_file("/tmp/count") == "x\n");
}

BOOST_AUTO_TEST_CASE(an_outcome_is_kept_until_it_is_forgotten) {
  auto exec = client.start(5, {"true"});
  client.wait(exec);
  const auto answer = client.entered();
  const auto ids = answer.getHello().getExecs();
  BOOST_TEST_REQUIRE(ids.size() == 1);
  BOOST_TEST(ids[0] == 5);
  auto forget = client.init().forgetRequest();
  forget.initIds(1).set(0, 5);
  forget.send().wait(client.scope());
  BOOST_TEST(client.entered().getHello().getExecs().size() == 0);
}

BOOST_AUTO_TEST_CASE(a_signal_reaches_the_main_process) {
  auto exec =
    client.start(1, {"sh", "-c", "trap 'echo got; exit 3' TERM; while true; do sleep 0.05; done"});
  auto waiting = exec.waitRequest().send();
  io.provider->getTimer().afterDelay(100 * kj::MILLISECONDS).wait(client.scope());
  auto signal = exec.signalRequest();
  signal.setNumber(SIGTERM);
  BOOST_TEST(signal.send().wait(client.scope()).getError().getCode() == 0);
  auto answer = waiting.wait(client.scope());
  BOOST_TEST(answer.getResult().getOutcome().getCode() == 3);
}

BOOST_AUTO_TEST_CASE(users_are_those_of_the_sandbox) {
  run_options options;
  auto id_as = [&](const char* user) {
    options.user = user;
    return client.run({"id"}, options).out;
  };
  BOOST_TEST(id_as("") == "uid=0(root) gid=0(root)\n");
  BOOST_TEST(id_as("agent") == "uid=1000(agent) gid=1000(agent) groups=10(wheel)\n");
  BOOST_TEST(id_as("1000:11") == "uid=1000(agent) gid=11(idle)\n");
  BOOST_TEST(id_as("agent:wheel") == "uid=1000(agent) gid=10(wheel)\n");
  BOOST_TEST(id_as("4242") == "uid=4242 gid=0(root)\n");
  options.user = "nobodyhere";
  auto e = error_of([&] { client.run({"id"}, options); });
  BOOST_TEST((e.code == errc::not_found));
  BOOST_TEST(e.message.find("nobodyhere") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_id_beyond_the_sandbox_is_refused_and_never_runs_as_root) {
  run_options options;
  for (const char* user : {"4294967295", "4294967295:1", "1:4294967295", "65536", "99999:77"}) {
    options.user = user;
    auto e = error_of([&] { client.run({"id"}, options); });
    BOOST_TEST((e.code == errc::invalid_argument), e.message);
    BOOST_TEST(e.message.find(user) != std::string::npos, e.message);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_start_is_an_error_that_names_it) {
  auto missing = error_of([&] { client.run({"no-such-program"}); });
  BOOST_TEST((missing.code == errc::no_program));
  BOOST_TEST(missing.message.find("no-such-program") != std::string::npos);
  client.write_file("/tmp/plain", "text");
  auto plain = error_of([&] { client.run({"/tmp/plain"}); });
  BOOST_TEST((plain.code == errc::not_executable));
  BOOST_TEST(plain.message.find("not executable") != std::string::npos);
  run_options options;
  options.cwd = "/nowhere";
  auto cwd = error_of([&] { client.run({"true"}, options); });
  BOOST_TEST((cwd.code == errc::not_found));
  BOOST_TEST(cwd.message == "start 'true': cwd '/nowhere' does not exist");
  options.cwd = "/tmp/plain";
  auto file = error_of([&] { client.run({"true"}, options); });
  BOOST_TEST((file.code == errc::invalid_argument));
  BOOST_TEST(file.message == "start 'true': cwd '/tmp/plain' is not a directory");
  client.shell("ln -s loop /tmp/loop");
  options.cwd = "/tmp/loop";
  auto loop = error_of([&] { client.run({"true"}, options); });
  BOOST_TEST((loop.code == errc::invalid_argument));
  BOOST_TEST(loop.message.starts_with("start 'true': cwd '/tmp/loop' may not be entered: "),
             loop.message);
  run_options stranger;
  stranger.user = "nobody-here";
  auto user = error_of([&] { client.run({"true"}, stranger); });
  BOOST_TEST((user.code == errc::not_found));
  BOOST_TEST(user.message.find("user 'nobody-here'") != std::string::npos, user.message);
  auto big = error_of([&] { client.run({"true", std::string(200 << 10, 'x')}); });
  BOOST_TEST((big.code == errc::invalid_argument));
  BOOST_TEST(big.message.find("131071") != std::string::npos);
  auto many = error_of([&] { client.run(std::vector<std::string>(40, std::string(50'000, 'x'))); });
  BOOST_TEST((many.code == errc::no_program || many.code == errc::invalid_argument));
  // The id is free again.
  BOOST_TEST(client.run({"true"}).code == 0);
}

BOOST_AUTO_TEST_CASE(a_user_who_is_named_in_a_group_without_end_is_in_it_once) {
  // The agent's file, read outside: there is room for 32 groups in what PID 1 is asked.
  client.shell("{ printf wheel:x:10:; for i in $(seq 20000); do printf agent,; done; echo agent; } "
               "> /etc/group");
  run_options options;
  options.user = "agent";
  auto r = client.run({"id", "-G"}, options);
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.out == "1000 10\n");
}

BOOST_AUTO_TEST_CASE(dev_stdout_can_be_opened_again_by_an_ordinary_user) {
  run_options options;
  options.user = "agent";
  auto r = client.shell("echo again > /proc/self/fd/1; echo twice > /proc/self/fd/2", options);
  BOOST_TEST(r.out == "again\n");
  BOOST_TEST(r.err == "twice\n");
}

BOOST_AUTO_TEST_CASE(a_command_holds_its_three_streams_and_no_other_descriptor) {
  auto r = client.run({"sh", "-c", "ls /proc/$$/fd; true"});
  BOOST_TEST(r.out == "0\n1\n2\n");
}

BOOST_AUTO_TEST_CASE(orphans_are_reaped) {
  client.shell("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05 & exit 0' &) ; done; sleep 0.3");
  auto r = client.shell("cat /proc/[0-9]*/stat");
  BOOST_TEST(r.out.find(") Z ") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_removed_its_tmp_runs_on) {
  client.shell("rm -rf /tmp /etc /root /home");
  auto r = client.run({"echo", "still here"});
  BOOST_TEST(r.out == "still here\n");
}

BOOST_AUTO_TEST_CASE(many_at_once_all_answer) {
  std::vector<wire::Exec::Client> execs;
  for (unsigned i = 0; i < 40; ++i)
    execs.push_back(client.start(1000 + i, {"sh", "-c", "echo $0", std::to_string(i)}));
  for (unsigned i = 0; i < 40; ++i)
    BOOST_TEST(client.wait(execs[i]).out == std::to_string(i) + "\n");
}

BOOST_AUTO_TEST_CASE(a_higher_epoch_fences_the_connections_before_it) {
  auto exec = client.start(1, {"sleep", "30"});
  auto waiting = exec.waitRequest().send();
  init_client newer{io, sandbox.socket_path(), 2};
  BOOST_CHECK_THROW(waiting.wait(client.scope()), kj::Exception);
  BOOST_CHECK_THROW(client.run({"true"}), kj::Exception);
  // It carries on where the older one stood.
  BOOST_TEST(newer.entered().getHello().getExecs().size() == 1);
  auto e = error_of([&] { init_client older(io, sandbox.socket_path(), 1); });
  BOOST_TEST((e.code == errc::invalid_state));
  BOOST_TEST(newer.run({"true"}).code == 0);
}

BOOST_AUTO_TEST_SUITE_END()
