// Sessions and background processes through `dsec`: a client that is killed, a runtime that is.
#include "tests/scenarios/client_rig.hpp"
#include "tests/scenarios/local_terminal.hpp"
#include "tests/scenarios/process_rig.hpp"

#include <nlohmann/json.hpp>

#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// A runtime that can be killed, and a sandbox.
struct served : client_rig {
  std::string box = create();

  void kill_and_start_again() {
    kill_server();
    start();
  }

  nlohmann::json processes() const {
    return json_of({"ps", box, "--json"});
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(session_client, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_background_process_is_printed_listed_attached_killed_and_removed,
                        served) {
  const auto id = line_of({"exec", "-d", "--name", "web", box, "--", "sh", "-c",
                           "echo one; echo two >&2; exec sleep 600"});
  auto all = processes();
  BOOST_TEST_REQUIRE(all.size() == 1u);
  BOOST_TEST(all[0]["id"] == id);
  BOOST_TEST(all[0]["name"] == "web");
  BOOST_TEST(!all[0].contains("outcome"));
  auto table = run({"ps", box});
  BOOST_TEST(table.out.find("web") != std::string::npos, table.out);
  BOOST_TEST(table.out.find("running") != std::string::npos, table.out);
  BOOST_TEST(run({"kill", box, "web", "--signal", "TERM"}).code == 0);
  auto shown = run({"attach", box, id});
  BOOST_TEST(shown.code == 128 + SIGTERM);
  BOOST_TEST(shown.out == "one\n");
  BOOST_TEST(shown.err == "two\n");
  BOOST_TEST(run({"kill", box, "web", "--signal", "TERM"}).code == 125);
  BOOST_TEST(run({"rm", box, "web"}).code == 0);
  BOOST_TEST(processes().empty());
  BOOST_TEST(run({"attach", box, "web"}).code == 125);
}

BOOST_FIXTURE_TEST_CASE(exec_with_a_terminal_and_without_one_of_its_own_runs_a_session, served) {
  auto x = run({"exec", "-it", box, "--", "sh"}, "tty; exit 6\n");
  BOOST_TEST(x.code == 6, x.err);
  BOOST_TEST(x.out.find("/dev/pts/") != std::string::npos, x.out);
  // Seen to its end, so nothing is kept of it.
  BOOST_TEST(processes().empty());
  BOOST_TEST(run({"exec", "-t", box, "--", "no-such-program"}).code == 127);
}

BOOST_FIXTURE_TEST_CASE(the_own_terminal_is_raw_meanwhile_and_as_it_was_afterwards, served) {
  local_terminal screen{words({"exec", "-it", box, "--", "sh"}), {40, 120}};
  BOOST_TEST_REQUIRE(screen.sees("# "));
  BOOST_TEST(!screen.is_cooked());
  screen.types("stty size; echo $TERM\n");
  BOOST_TEST(screen.sees("40 120\r\n"), screen.text());
  screen.resizes({41, 121});
  screen.types("while ! stty size | grep 41.1''21; do :; done\n");
  BOOST_TEST(screen.sees("41 121\r\n"), screen.text());
  // The key is the session's, not the client's.
  screen.types("sleep 631\n");
  // Until it runs, the key would be the shell's; it does not say when.
  BOOST_TEST_REQUIRE(bench::ask_until(bench::within(20s), 20ms, [&] {
    return run({"exec", box, "--", "pidof", "sleep"}).code == 0;
  }));
  screen.types("\x03");
  screen.types("exit $((20+2))\n");
  BOOST_TEST(screen.wait() == 22, screen.text());
  BOOST_TEST(screen.is_cooked());
}

BOOST_FIXTURE_TEST_CASE(detach_keys_leave_a_session_that_can_be_attached_to_again, served) {
  {
    local_terminal screen{words({"exec", "-it", "--name", "work", box, "--", "sh"}), {24, 80}};
    BOOST_TEST_REQUIRE(screen.sees("# "));
    screen.types("kept=$((40+2)); echo re''ady\n");
    BOOST_TEST_REQUIRE(screen.sees("ready\r\n"), screen.text());
    screen.types("\x10\x11");
    BOOST_TEST(screen.wait() == 0, screen.text());
    BOOST_TEST(screen.is_cooked());
  }
  local_terminal again{words({"attach", box, "work", "--tail"}), {24, 80}};
  again.types("echo $kept; exit\n");
  BOOST_TEST(again.sees("42\r\n"), again.text());
  BOOST_TEST(again.text().find("ready") == std::string::npos);
  BOOST_TEST(again.wait() == 0);
}

BOOST_FIXTURE_TEST_CASE(a_client_and_a_runtime_that_are_killed_end_no_session, served) {
  {
    local_terminal screen{words({"exec", "-it", "--name", "work", box, "--", "sh"}), {24, 80}};
    BOOST_TEST_REQUIRE(screen.sees("# "));
    screen.types("kept=$((40+2)); echo bef''ore\n");
    BOOST_TEST_REQUIRE(screen.sees("before\r\n"), screen.text());
    screen.kill(SIGKILL);
    BOOST_TEST(screen.wait() == 128 + SIGKILL);
  }
  const auto id = processes()[0]["id"];
  kill_and_start_again();
  auto all = processes();
  BOOST_TEST_REQUIRE(all.size() == 1u);
  BOOST_TEST(all[0]["id"] == id);
  BOOST_TEST(all[0]["terminal"] == true);
  BOOST_TEST(!all[0].contains("outcome"));
  local_terminal again{words({"attach", box, "work"}), {24, 80}};
  BOOST_TEST(again.sees("before\r\n"), again.text());
  again.types("echo $kept; exit 8\n");
  BOOST_TEST(again.sees("42\r\n"), again.text());
  BOOST_TEST(again.wait() == 8);
  BOOST_TEST(processes()[0]["code"] == 8);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_is_told_to_end_gives_its_terminal_back, served) {
  for (int number : {SIGTERM, SIGHUP}) {
    local_terminal screen{words({"exec", "-it", box, "--", "sh"}), {24, 80}};
    BOOST_TEST_REQUIRE(screen.sees("# "));
    screen.kill(number);
    BOOST_TEST(screen.wait() == 128 + number);
    BOOST_TEST(screen.is_cooked());
  }
  BOOST_TEST(processes().size() == 2u);
  // So does one whose runtime is gone.
  local_terminal screen{words({"exec", "-it", box, "--", "sh"}), {24, 80}};
  BOOST_TEST_REQUIRE(screen.sees("# "));
  kill_and_start_again();
  BOOST_TEST(screen.wait() == 125, screen.text());
  BOOST_TEST(screen.is_cooked());
}

BOOST_FIXTURE_TEST_CASE(a_process_whose_end_nobody_saw_is_still_told_after_a_restart, served) {
  run({"exec", "-d", "--name", "short", box, "--", "sh", "-c", "echo said; exit 9"});
  kill_and_start_again();
  auto x = run({"attach", box, "short"});
  BOOST_TEST(x.code == 9);
  BOOST_TEST(x.out == "said\n");
}

BOOST_AUTO_TEST_SUITE_END()
