#define BOOST_TEST_MODULE init_collected
#include "tests/kernel/init/fixture.hpp"

#include <csignal>

using namespace dsec;
using namespace dsec::test;

namespace {

struct collecting : fixture {
  run_result collect(const std::vector<std::string>& argv, const run_options& options = {}) {
    return client.wait(client.collect(++client.last_id, argv, options));
  }
};

} // namespace

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_FIXTURE_TEST_SUITE(collected, collecting)

BOOST_AUTO_TEST_CASE(output_and_exit_code_come_back_in_one_call) {
  auto r = collect({"sh", "-c", "echo out; echo err >&2; exit 7"});
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.code == 7);
  BOOST_TEST(r.out == "out\n");
  BOOST_TEST(r.err == "err\n");
}

BOOST_AUTO_TEST_CASE(more_than_a_pipe_holds_is_read_and_counted) {
  run_options options;
  options.spool_bytes = 1000;
  auto r = collect({"sh", "-c", "head -c 500000 /dev/zero | tr '\\0' a"}, options);
  BOOST_TEST(r.out == std::string(1000, 'a'));
  BOOST_TEST(r.out_bytes == 500000);
}

BOOST_AUTO_TEST_CASE(output_that_comes_late_is_there) {
  auto r = collect({"sh", "-c", "echo a; sleep 0.1; echo b; sleep 0.1; echo c >&2"});
  BOOST_TEST(r.out == "a\nb\n");
  BOOST_TEST(r.err == "c\n");
}

BOOST_AUTO_TEST_CASE(a_background_child_does_not_hold_the_answer) {
  auto r = collect({"sh", "-c", "sleep 30 & echo started"});
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.out == "started\n");
  BOOST_TEST(r.duration_ms < 5000);
  BOOST_TEST(sandbox.payload_pids().size() == 1);
}

BOOST_AUTO_TEST_CASE(an_environment_larger_than_a_datagram_arrives) {
  run_options options;
  options.env = {"PATH=/bin", "LARGE=" + std::string(100'000, 'x')};
  auto r = collect({"sh", "-c", "echo ${#LARGE}; pwd"}, options);
  BOOST_TEST(r.out == "100000\n/\n");
}

BOOST_AUTO_TEST_CASE(another_user_may_open_its_output_again) {
  run_options options;
  options.user = "agent";
  auto r = collect({"sh", "-c", "id -u; echo again > /proc/self/fd/1"}, options);
  BOOST_TEST(r.out == "1000\nagain\n");
}

BOOST_AUTO_TEST_CASE(what_is_still_told_of_a_refused_command_is_nothing_to_the_next_of_its_id) {
  run_options known, slow, nowhere;
  known.user = "0";
  slow.user = "agent"; // Looked up inside, so that the command waits for its start.
  nowhere.cwd = "/nowhere";
  for (int i = 0; i < 300; ++i) {
    auto refused = error_of([&] { client.wait(client.collect(1, {"no-such-program"}, {}, {1})); });
    BOOST_TEST((refused.code == errc::no_program));
    auto directory = error_of([&] { client.wait(client.collect(1, {"true"}, nowhere)); });
    BOOST_TEST((directory.code == errc::not_found));
    auto r = client.wait(client.collect(1, {"sh", "-c", "exit 5"}, i % 2 ? slow : known));
    BOOST_TEST_REQUIRE(r.code == 5);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_start_is_an_error_and_frees_its_id) {
  auto missing = error_of([&] { client.wait(client.collect(1, {"no-such-program"})); });
  BOOST_TEST((missing.code == errc::no_program));
  BOOST_TEST(missing.message.find("no-such-program") != std::string::npos);
  run_options options;
  options.cwd = "/nowhere";
  auto cwd = error_of([&] { client.wait(client.collect(1, {"true"}, options)); });
  BOOST_TEST((cwd.code == errc::not_found));
  options = {};
  options.user = "nobodyhere";
  auto user = error_of([&] { client.wait(client.collect(1, {"true"}, options)); });
  BOOST_TEST((user.code == errc::not_found));
  BOOST_TEST(client.wait(client.collect(1, {"true"})).code == 0);
}

BOOST_AUTO_TEST_CASE(input_is_refused_because_nothing_could_carry_it) {
  run_options options;
  options.has_stdin = true;
  auto e = error_of([&] { collect({"cat"}, options); });
  BOOST_TEST((e.code == errc::invalid_argument));
  BOOST_TEST(e.message.find("hasStdin") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_id_runs_once_and_everybody_hears_of_it) {
  const std::vector<std::string> argv{"sh", "-c", "sleep 0.1; echo x >> /tmp/count"};
  auto first = client.collect(1, argv);
  auto second = client.collect(1, argv);
  BOOST_TEST(client.wait(kj::mv(first)).code == 0);
  BOOST_TEST(client.wait(kj::mv(second)).code == 0);
  BOOST_TEST(client.wait(client.collect(1, argv)).code == 0);
  auto exec = client.start(1, argv);
  BOOST_TEST(client.wait(exec).code == 0);
  BOOST_TEST(client.read_file("/tmp/count") == "x\n");
}

BOOST_AUTO_TEST_CASE(what_is_acknowledged_travels_with_the_next_command) {
  client.wait(client.collect(5, {"true"}));
  client.wait(client.collect(6, {"true"}, {}, {5}));
  auto entered = client.entered();
  auto ids = entered.getHello().getExecs();
  BOOST_TEST_REQUIRE(ids.size() == 1);
  BOOST_TEST(ids[0] == 6);
}

BOOST_AUTO_TEST_CASE(cancelling_by_id_kills_the_whole_tree) {
  client.shell("mkfifo /tmp/up");
  auto answer = client.collect(1, {"sh", "-c", "sleep 30 & echo > /tmp/up; sleep 30"});
  client.shell("cat /tmp/up");
  client.cancel(1);
  BOOST_TEST(client.wait(kj::mv(answer)).kind == kind::CANCELLED);
  BOOST_TEST(sandbox.payload_empties(5000));
}

BOOST_AUTO_TEST_CASE(cancelling_at_once_leaves_nothing) {
  for (std::uint64_t id = 1; id <= 30; ++id) {
    auto answer = client.collect(id, {"sh", "-c", "sleep 30 & sleep 30"});
    client.cancel(id);
    BOOST_TEST(client.wait(kj::mv(answer)).kind == kind::CANCELLED);
  }
  BOOST_TEST(sandbox.payload_empties(5000));
}

BOOST_AUTO_TEST_CASE(a_deadline_ends_it) {
  run_options options;
  options.deadline_ms = 100;
  auto r = collect({"sh", "-c", "sleep 30 & sleep 30"}, options);
  BOOST_TEST(r.kind == kind::TIMED_OUT);
  BOOST_TEST(sandbox.payload_empties(5000));
}

BOOST_AUTO_TEST_CASE(a_signal_by_id_reaches_the_main_process) {
  client.shell("mkfifo /tmp/up");
  auto answer = client.collect(
    1, {"sh", "-c", "trap 'exit 3' TERM; echo > /tmp/up; while true; do sleep 0.05; done"});
  client.shell("cat /tmp/up");
  auto request = client.init().signalRequest();
  request.setId(1);
  request.setNumber(SIGTERM);
  BOOST_TEST(request.send().wait(client.scope()).getError().getCode() == 0);
  BOOST_TEST(client.wait(kj::mv(answer)).code == 3);
}

BOOST_AUTO_TEST_CASE(many_at_once_all_answer) {
  std::vector<init_client::collected> answers;
  for (unsigned i = 0; i < 40; ++i)
    answers.push_back(client.collect(1000 + i, {"sh", "-c", "echo $0", std::to_string(i)}));
  for (unsigned i = 0; i < 40; ++i)
    BOOST_TEST(client.wait(kj::mv(answers[i])).out == std::to_string(i) + "\n");
}

BOOST_AUTO_TEST_SUITE_END()
