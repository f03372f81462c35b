// What `dsec` refuses before it does anything, and how it says so.
#include "tests/scenarios/client_rig.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

using command_line = std::vector<std::string>;

/// Each of `values` is refused with the option's name, the value and `limit`.
void check_refused(const client_rig& at, const command_line& begin, const std::string& option,
                   const command_line& values, const command_line& rest, const std::string& limit) {
  for (const auto& value : values)
    BOOST_TEST_CONTEXT(option << " " << value) {
      auto line = begin;
      line.insert(line.end(), {option, value});
      line.insert(line.end(), rest.begin(), rest.end());
      auto x = at.run(line);
      BOOST_TEST(x.code == 125);
      BOOST_TEST(x.out == "");
      BOOST_TEST(x.err.starts_with(fmt::format("dsec: {} is \"{}\"; ", option, value)), x.err);
      BOOST_TEST(x.err.find(limit) != std::string::npos, x.err);
    }
}

const command_line no_seconds{"-1",     "nan", "-nan", "inf", "1e300",        "0.0001",
                              "0.0009", "",    "soon", "1 ",  "999999999999", "1e-300"};
const command_line no_whole{"-1",  "-9223372036854775808", "1.5", "nan", "",
                            "0x8", "18446744073709551616", "one", "+1"};

} // namespace

BOOST_AUTO_TEST_SUITE(client_refusal, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(seconds_that_are_none_are_refused_by_every_option, client_rig) {
  const std::string limit = "0, or a number from 0.001 to";
  auto id = create();
  for (const char* option : {"--pause-after", "--stop-after"})
    check_refused(*this, {"job", "open"}, option, no_seconds, {"late"}, limit);
  BOOST_TEST(run({"job", "resume", "late"}).code == 125); // It was not opened.
  check_refused(*this, {"exec"}, "--deadline", no_seconds, {id, "true"}, limit);
  check_refused(*this, {"run", "--image", "busybox"}, "--deadline", no_seconds, {"true"}, limit);
  auto clocks = no_seconds;
  std::erase(clocks, ""); // Is as if it were not given.
  for (const char* option : {"--ttl", "--budget", "--idle"}) {
    check_refused(*this, {"create", "--image", "busybox"}, option, clocks, {}, limit);
    check_refused(*this, {"run", "--image", "busybox"}, option, clocks, {"true"}, limit);
    check_refused(*this, {"clocks", id}, option, clocks, {}, limit);
  }
  BOOST_TEST(json_of({"ps", "--all", "--json"}).size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_lease_of_a_part_of_a_second_is_taken_as_it_is, client_rig) {
  BOOST_TEST(run({"job", "open", "short", "--stop-after", "0.3"}).code == 0);
  auto x = run({"job", "open", "short", "--pause-after", "2", "--stop-after", "1"});
  BOOST_TEST(x.code == 125);
  BOOST_TEST(x.err.find("stop_after 1000 ms") != std::string::npos, x.err);
}

BOOST_FIXTURE_TEST_CASE(whole_numbers_that_are_none_are_refused_by_every_option, client_rig) {
  const std::string limit = "a whole number from ";
  auto id = create();
  check_refused(*this, {"exec"}, "--step", no_whole, {id, "true"}, limit);
  check_refused(*this, {"exec"}, "--step", {"9223372036854775808"}, {id, "true"}, limit);
  check_refused(*this, {"run", "--image", "busybox"}, "--step", no_whole, {"true"}, limit);
  check_refused(*this, {"create", "--image", "busybox"}, "--pids", no_whole, {}, limit);
  check_refused(*this, {"create", "--image", "busybox"}, "--pids", {"0", "3", "4294967300"}, {},
                "a whole number from 4 to 30000");
  check_refused(*this, {"events"}, "--from", no_whole, {"cli"}, limit);
  check_refused(*this, {"serve"}, "--warm", no_whole, {}, limit);
  check_refused(*this, {"serve"}, "--workers", no_whole, {}, limit);
  check_refused(*this, {"serve"}, "--capacity", no_whole, {}, limit);
  check_refused(*this, {"replay"}, "--seed", no_whole, {"none.yaml"}, limit);
  check_refused(*this, {"replay"}, "--flip", no_whole, {"none.yaml"}, limit);
  auto step = run({"logs", id, "1.5"});
  BOOST_TEST(step.code == 125);
  BOOST_TEST(step.err.starts_with("dsec: step is \"1.5\"; a whole number from 0"), step.err);
  auto process = run({"kill", id, "18446744073709551616"});
  BOOST_TEST(process.code == 125);
  BOOST_TEST(process.err.starts_with("dsec: process is \"18446744073709551616\"; "), process.err);
  auto spawner = run_program({machine().programs / "dsec-spawner", "--warm", "-1"});
  BOOST_TEST(spawner.code != 0);
  BOOST_TEST(spawner.err.find("--warm: Value -1 not in range 0") != std::string::npos, spawner.err);
  BOOST_TEST(run({"logs", id, "--json"}).out == "[]\n");
  BOOST_TEST(json_of({"ps", "--all", "--json"}).size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(an_option_that_would_change_nothing_is_refused_and_named, client_rig) {
  auto id = create();
  const std::pair<command_line, const char*> lines[] = {
    {{"exec", "--name", "web", id, "touch", "/ran"}, "--name web: only a process of -d or -t"},
    {{"exec", "--detached", "-d", id, "touch", "/ran"}, "--detached with -d"},
    {{"exec", "--detached", "-t", id, "touch", "/ran"}, "--detached with -t"},
    {{"exec", "--step", "1", "-d", id, "touch", "/ran"}, "--step 1 with -d"},
    {{"exec", "--step", "1", "-t", id, "touch", "/ran"}, "--step 1 with -t"},
    {{"ps", "--all", id}, "--all with sandbox"},
    {{"logs", "--json", id, "1"}, "--json with step 1"},
    {{"create", "--image", "busybox", "--on-idle", "stop"}, "--on-idle stop"},
    {{"create", "--image", "busybox", "--idle", "0", "--on-idle", "stop"}, "--on-idle stop"},
    {{"run", "--image", "busybox", "--idle", "0", "--on-idle", "stop", "true"}, "--on-idle stop"},
    {{"clocks", id, "--on-idle", "reclaim"}, "--on-idle reclaim"},
  };
  for (const auto& [line, text] : lines)
    BOOST_TEST_CONTEXT(fmt::format("{}", fmt::join(line, " "))) {
      auto x = run(line);
      BOOST_TEST(x.code == 125);
      BOOST_TEST(x.err.find(text) != std::string::npos, x.err);
    }
  BOOST_TEST(run({"exec", id, "test", "-e", "/ran"}).code == 1);
  BOOST_TEST(json_of({"ps", id, "--json"}).empty());
  auto set = json_of({"clocks", id, "--json", "--idle", "900", "--on-idle", "stop"});
  BOOST_TEST(set["idle_timeout_ms"] == 900'000);
  BOOST_TEST(set["on_idle"] == "stop");
}

BOOST_FIXTURE_TEST_CASE(input_that_cannot_be_read_is_an_error_and_runs_nothing, client_rig) {
  auto id = create();
  for (const auto& line : {command_line{"exec", "-i", id, "touch", "/ran"},
                           {"exec", "-i", "--step", "1", id, "touch", "/ran"},
                           {"exec", "-it", id, "touch", "/ran"},
                           {"run", "--image", "busybox", "-i", "true"}})
    BOOST_TEST_CONTEXT(fmt::format("{}", fmt::join(line, " "))) {
      auto directory = run_by("exec \"$@\" </", line);
      BOOST_TEST(directory.code == 125);
      BOOST_TEST(directory.err == "dsec: read standard input: Is a directory\n");
      auto closed = run_by("exec \"$@\" 0>/dev/null", line);
      BOOST_TEST(closed.code == 125);
      BOOST_TEST(closed.err == "dsec: read standard input: Bad file descriptor\n");
    }
  BOOST_TEST(run({"exec", id, "test", "-e", "/ran"}).code == 1);
  BOOST_TEST(json_of({"ps", "--all", "--json"}).size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(input_that_breaks_off_cancels_the_command_and_is_an_error, client_rig) {
  auto id = create();
  // It can be opened for reading, and tells what is wrong only then.
  auto memory = run_by("exec \"$@\" </proc/$PPID/mem", {"exec", "-i", id, "cat"});
  BOOST_TEST(memory.code == 125);
  BOOST_TEST(memory.err == "dsec: read standard input: Input/output error\n");
}

BOOST_FIXTURE_TEST_CASE(a_process_is_not_named_by_digits_alone, client_rig) {
  auto id = create();
  auto x = run({"exec", "-d", "--name", "12", id, "sleep", "600"});
  BOOST_TEST(x.code == 125);
  BOOST_TEST(x.err.find("process: name is \"12\"; not of digits alone") != std::string::npos,
             x.err);
  BOOST_TEST(json_of({"ps", id, "--json"}).empty());
  auto started = line_of({"exec", "-d", "--name", "12a", id, "sleep", "600"});
  BOOST_TEST(run({"kill", id, "12a"}).code == 0);
  BOOST_TEST(run({"attach", id, started}).code == 137);
}

BOOST_FIXTURE_TEST_CASE(input_is_passed_on_by_attach_only_to_a_process_that_takes_it, client_rig) {
  auto id = create();
  run({"exec", "-d", "--name", "deaf", id, "sleep", "600"});
  auto deaf = run({"attach", "-i", id, "deaf"}, "hello\n");
  BOOST_TEST(deaf.code == 125);
  BOOST_TEST(deaf.err.find("--interactive: ") != std::string::npos, deaf.err);
  BOOST_TEST(deaf.err.find("its input is closed") != std::string::npos, deaf.err);
  run({"exec", "-di", "--name", "all", id, "cat"});
  auto heard = run({"attach", "-i", id, "all"}, "hello\n");
  BOOST_TEST(heard.code == 0, heard.err);
  BOOST_TEST(heard.out == "hello\n");
  // It has ended: what it said is told as often as asked, but it takes nothing any more.
  for (int i = 0; i < 2; ++i)
    BOOST_TEST(run({"attach", id, "all"}).out == "hello\n");
  BOOST_TEST(run({"attach", "-i", id, "all"}, "more\n").code == 125);
  auto help = run({"attach", "--help"}).out;
  for (const char* text : {"with -i alone", "exec -di", "Of one that has ended", "ctrl-p ctrl-q"})
    BOOST_TEST(help.find(text) != std::string::npos, help);
  BOOST_TEST(help.find("process group") == std::string::npos, help);
}

BOOST_FIXTURE_TEST_CASE(no_refusal_shows_how_dsec_is_written, client_rig) {
  auto id = create();
  for (const auto& line : {command_line{"cp", "/no/such", id + ":/x"},
                           {"cp", id + ":/no/such", "-"},
                           {"cp", id + ":/bin", "/dev/full"},
                           {"exec", id, "no-such-program"},
                           {"exec", "no-such-sandbox", "true"},
                           {"attach", id, "nobody"}}) {
    auto x = run(line);
    BOOST_TEST(x.code != 0);
    for (const char* code : {"()", " = ", "::", "->", "remote exception", "expected "})
      BOOST_TEST(x.err.find(code) == std::string::npos, x.err);
  }
}

BOOST_AUTO_TEST_SUITE_END()
