// The same through `dsec`: a client that goes, is interrupted, or is not read from.
#include "sdk/cli/client.hpp"
#include "tests/scenarios/client_rig.hpp"
#include "tests/scenarios/exec_rig.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

struct exec_client_rig : client_rig {
  nlohmann::json sandboxes() const {
    return nlohmann::json::parse(run({"ps", "--json"}).out);
  }

  nlohmann::json steps(const std::string& id) const {
    return nlohmann::json::parse(run({"logs", "--json", id}).out);
  }

  std::vector<std::string> shell(const std::string& id, const std::string& script,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"exec"};
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {id, "--", "sh", "-c", script});
    return words(all);
  }

  /// No process of that name is left inside, within a second: nobody tells when the last has gone.
  bool none_left(const std::string& id, const std::string& name) const {
    return bench::ask_until(bench::within(1s), 20ms, [&] {
      return run({"exec", id, "--", "pidof", name}).code == 1;
    });
  }
};

/// Heeds no signal but to say that it came.
constexpr auto stubborn = "trap 'echo told' INT TERM; setsid sleep 600 & echo begun; "
                          "while :; do sleep 600; done";

/// A client that is sent signals one by one: two of a kind that are both pending are one.
struct interrupted {
  child_process child;
  pid_t pid;

  explicit interrupted(std::vector<std::string> argv) : child{told_pid(std::move(argv))} {
    pid = std::stoi(child.line().value_or("0"));
  }

  /// Sends it and returns once it was taken, or the client has ended.
  bool hears(int number) {
    child.kill(number);
    return bench::ask_until(bench::within(10s), 5ms, [&] { return !is_pending(number); });
  }

private:
  static std::vector<std::string> told_pid(std::vector<std::string> argv) {
    argv.insert(argv.begin(), {"/bin/sh", "-c", "echo $$; exec \"$@\"", "sh"});
    return argv;
  }

  bool is_pending(int number) const {
    std::ifstream status{fmt::format("/proc/{}/status", pid)};
    for (std::string word; status >> word;)
      if (word == "SigPnd:" || word == "ShdPnd:") {
        status >> word;
        if (std::stoull(word, nullptr, 16) >> (number - 1) & 1)
          return true;
      }
    return false;
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(exec_client, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_client_that_is_gone_takes_the_whole_tree_along_within_a_second,
                        exec_client_rig) {
  auto id = create();
  child_process client{shell(id, "sleep 300 & setsid sleep 300 & echo begun; sleep 300 | cat")};
  BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
  client.kill(SIGKILL);
  client.wait();
  BOOST_TEST(none_left(id, "sleep"));
  BOOST_TEST(run({"exec", id, "--", "echo", "next"}).out == "next\n");
}

BOOST_FIXTURE_TEST_CASE(the_first_signal_ends_an_ordinary_command_with_its_children,
                        exec_client_rig) {
  auto id = create();
  for (int number : {SIGINT, SIGTERM}) {
    child_process client{shell(id, "echo begun; sleep 600; echo not reached")};
    BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
    client.kill(number);
    BOOST_TEST(client.wait() == 128 + number);
    BOOST_TEST(none_left(id, "sleep"));
  }
}

BOOST_FIXTURE_TEST_CASE(the_second_signal_kills_the_tree_of_a_command_that_heeds_none,
                        exec_client_rig) {
  auto id = create();
  std::uint64_t number = 0;
  for (int first : {SIGINT, SIGTERM})
    for (int second : {SIGINT, SIGTERM})
      for (auto manner : {"", "--detached", "--step"})
        BOOST_TEST_CONTEXT(first << ", " << second << " " << manner) {
          std::vector<std::string> more;
          if (*manner)
            more.push_back(manner);
          if (manner == std::string{"--step"})
            more.push_back(std::to_string(++number));
          interrupted client{shell(id, stubborn, more)};
          BOOST_TEST_REQUIRE(client.child.line().value_or("") == "begun");
          BOOST_TEST_REQUIRE(client.hears(first));
          auto began = steady::now();
          BOOST_TEST_REQUIRE(client.hears(second));
          BOOST_TEST(client.child.wait() == 137);
          BOOST_TEST(since(began).count() < 5000);
          BOOST_TEST(none_left(id, "sleep"));
        }
  BOOST_TEST(steps(id).size() == number);
  for (const auto& each : steps(id))
    BOOST_TEST(each["outcome"] == "cancelled");
}

BOOST_FIXTURE_TEST_CASE(a_client_whose_output_nobody_takes_can_be_ended_all_the_same,
                        exec_client_rig) {
  auto id = create();
  child_process client{shell(id, "echo begun; exec yes")};
  BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
  client.kill(SIGTERM);
  BOOST_TEST_REQUIRE(none_left(id, "yes"));
  // What it wrote still waits to be read, and is not.
  auto began = steady::now();
  client.kill(SIGTERM);
  BOOST_TEST(client.wait() == 128 + SIGTERM);
  BOOST_TEST(since(began).count() < 5000);
}

BOOST_FIXTURE_TEST_CASE(an_interrupted_run_leaves_no_sandbox, exec_client_rig) {
  for (bool twice : {false, true}) {
    interrupted client{words(
      {"run", "--image", "busybox", "--", "sh", "-c", twice ? stubborn : "echo begun; sleep 600"})};
    BOOST_TEST_REQUIRE(client.child.line().value_or("") == "begun");
    // Not until the command says so: a shell that is about to start `sleep` says it 600 s later.
    BOOST_TEST_REQUIRE(client.hears(SIGINT));
    if (twice)
      BOOST_TEST_REQUIRE(client.hears(SIGINT));
    BOOST_TEST(client.child.wait() == (twice ? 137 : 128 + SIGINT));
    BOOST_TEST(sandboxes().empty());
  }
}

BOOST_FIXTURE_TEST_CASE(a_runtime_that_does_not_answer_does_not_hold_an_interrupted_client,
                        exec_client_rig) {
  auto id = create();
  interrupted client{shell(id, stubborn)};
  BOOST_TEST_REQUIRE(client.child.line().value_or("") == "begun");
  server->kill(SIGSTOP);
  auto began = steady::now();
  bool heard = client.hears(SIGINT) && client.hears(SIGINT) && client.hears(SIGINT);
  const int code = client.child.wait();
  server->kill(SIGCONT);
  BOOST_TEST(heard);
  BOOST_TEST(since(began).count() < 5000);
  BOOST_TEST(code == 128 + SIGINT);
  BOOST_TEST(none_left(id, "sleep"));
}

BOOST_FIXTURE_TEST_CASE(bytes_that_are_no_text_pass_through_the_client_unchanged, exec_client_rig) {
  auto id = create();
  auto bytes = many_bytes(3 << 20);
  auto x = run({"exec", "-i", id, "--", "sh", "-c", "tee /dev/stderr; exit 9"}, bytes);
  BOOST_TEST(x.code == 9);
  BOOST_TEST((x.out == bytes));
  BOOST_TEST((x.err == bytes));
  auto recorded = run({"exec", "--step", "1", id, "--", "head", "-c", "65536", "/dev/urandom"});
  BOOST_TEST(recorded.out.size() == 65536u);
  BOOST_TEST((run({"logs", id, "1"}).out == recorded.out));
  BOOST_TEST(steps(id)[0]["out_bytes"] == 65536);
}

BOOST_FIXTURE_TEST_CASE(a_result_of_two_full_spools_reaches_a_client, exec_client_rig) {
  constexpr std::size_t size = 8 << 20;
  auto id = create();
  auto to = connect(state);
  BOOST_TEST_REQUIRE(bool(to), (to ? "" : to.error().message));
  auto find = (*to)->dsec.sandboxRequest();
  find.setId(id.c_str());
  auto exec = find.send().getSandbox().execRequest();
  auto request = exec.initRequest();
  auto argv = request.initArgv(3);
  const std::string words[] = {
    "/bin/sh", "-c", fmt::format("head -c {0} /dev/zero; head -c {0} /dev/zero >&2", size)};
  for (unsigned i = 0; i < 3; ++i)
    argv.set(i, kj::arrayPtr(reinterpret_cast<const kj::byte*>(words[i].data()), words[i].size()));
  request.setSpoolBytes(size);
  auto answer = wait(**to, exec.send().getExec().waitRequest().send());
  BOOST_TEST_REQUIRE(bool(answer), (answer ? "" : answer.error().message));
  BOOST_TEST(answer->getResult().getStdout().size() == size);
  BOOST_TEST(answer->getResult().getStderr().size() == size);
}

BOOST_FIXTURE_TEST_CASE(a_progress_bar_is_seen_while_it_moves_through_the_client_as_well,
                        exec_client_rig) {
  auto id = create();
  // Each waits to be told that the one before was seen.
  BOOST_TEST_REQUIRE(run({"exec", id, "--", "mkfifo", "/room/go"}).code == 0);
  child_process client{shell(id, "printf '\\r1\\n'; read x < /room/go; printf '\\r2\\n'")};
  BOOST_TEST(client.line().value_or("") == "\r1");
  BOOST_TEST(run({"exec", id, "--", "sh", "-c", "echo > /room/go"}).code == 0);
  BOOST_TEST(client.line().value_or("") == "\r2");
  BOOST_TEST(client.wait() == 0);
}

BOOST_FIXTURE_TEST_CASE(a_step_that_never_ran_is_not_in_the_logs, exec_client_rig) {
  auto id = create();
  BOOST_TEST(run({"exec", "--step", "1", id, "--", "/no/such/program"}).code == 127);
  BOOST_TEST(steps(id).empty());
  BOOST_TEST(sandboxes()[0]["steps"] == 0);
  BOOST_TEST(run({"logs", id, "1"}).code == 125);
  BOOST_TEST(run({"exec", "--step", "1", id, "--", "true"}).code == 0);
  BOOST_TEST(sandboxes()[0]["steps"] == 1);
}

BOOST_FIXTURE_TEST_CASE(a_command_that_the_process_limit_keeps_from_starting_ends_with_126,
                        exec_client_rig) {
  auto id = create({"--pids", "4"});
  auto full = run({"exec", id, "--", "sh", "-c", "for i in 1 2 3 4; do sleep 600 & done"});
  BOOST_TEST(full.err.find("the process limit was reached") != std::string::npos, full.err);
  // The last of the four is free again now that the shell has ended.
  child_process last{shell(id, "echo begun; exec sleep 600")};
  BOOST_TEST_REQUIRE(last.line().value_or("") == "begun");
  auto x = run({"exec", id, "--", "true"});
  BOOST_TEST(x.code == 126);
  BOOST_TEST(x.err == "dsec: the process limit was reached\n");
  for (const char* verb : {"run", "exec"})
    BOOST_TEST(run({verb, "--help"}).out.find("process limit") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
