// What `dsec` prints: that it was printed at all, ids that every command takes, and bytes that a
// terminal would obey.
#include "tests/scenarios/client_rig.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

using command_line = std::vector<std::string>;

/// Standard output is a pipe that nobody reads any more.
constexpr auto unread = "pipe=$(mktemp -u) && mkfifo $pipe && exec 4<>$pipe 5>$pipe 4<&- && "
                        "rm $pipe && exec \"$@\" >&5 5>&-";

constexpr auto full = "exec \"$@\" >/dev/full";

/// A scenario that ends at once.
std::string little_scenario(const std::filesystem::path& folder) {
  auto file = folder / "little.yaml";
  std::ofstream{file} << "name: little\nnodes: 1\ncapacity: 1\nlimit: 60\njobs:\n  - name: one\n"
                         "    sandboxes: 1\n    steps: 1\n    think: [0, 0]\n    act: [0, 0]\n";
  return file;
}

} // namespace

BOOST_AUTO_TEST_SUITE(client_output, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(output_that_cannot_be_written_is_an_error_of_every_command, client_rig) {
  auto id = create();
  run({"exec", "--step", "1", id, "echo", "hello"});
  run({"exec", "-d", "--name", "said", id, "echo", "hello"});
  BOOST_TEST(run({"attach", id, "said"}).out == "hello\n");
  const command_line lines[] = {
    {"ps"},
    {"ps", "--json"},
    {"ps", id},
    {"ps", id, "--json"},
    {"stats", id},
    {"stats", id, "--json"},
    {"clocks", id},
    {"clocks", id, "--json"},
    {"logs", id},
    {"logs", id, "--json"},
    {"logs", id, "1"},
    {"events", "cli"},
    {"events", "cli", "--json"},
    {"events", "cli", "--follow"},
    {"job", "ls"},
    {"job", "ls", "--json"},
    {"job", "ls", "cli"},
    {"job", "preempt", "cli"},
    {"job", "preempt", "cli", "--json"},
    {"image", "ls"},
    {"image", "ls", "--json"},
    {"image", "import", machine().root / "empty"},
    {"doctor"},
    {"doctor", "--json"},
    {"replay", little_scenario(machine().root)},
    {"replay", "--json", little_scenario(machine().root)},
    {"exec", id, "echo", "hello"},
    {"exec", "-t", id, "echo", "hello"},
    {"attach", id, "said"},
    {"cp", id + ":/etc/passwd", "-"},
    {"run", "--image", "busybox", "echo", "hello"},
    {"serve", "--help"},
    {"--help"},
  };
  std::filesystem::create_directories(machine().root / "empty");
  for (const auto& line : lines)
    for (auto [how, why] : {std::pair{full, "No space left on device"}, {unread, "Broken pipe"}})
      BOOST_TEST_CONTEXT(fmt::format("{}: {}", fmt::join(line, " "), why)) {
        auto x = run_by(how, line);
        BOOST_TEST(x.code == 125);
        BOOST_TEST(x.err.find(why) != std::string::npos, x.err);
      }
  // `run` left nothing.
  BOOST_TEST(json_of({"ps", "--json"}).size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_runtime_that_cannot_say_that_it_is_ready_is_none, client_rig) {
  kill_server();
  auto x = run_by(full, {"serve", "--warm", "0"});
  BOOST_TEST(x.code == 125);
  BOOST_TEST(x.err.find("write standard output") != std::string::npos, x.err);
  start();
}

BOOST_FIXTURE_TEST_CASE(a_sandbox_whose_id_cannot_be_told_is_stopped_unless_its_key_names_it,
                        client_rig) {
  auto x = run_by(full, {"create", "--image", "busybox"});
  BOOST_TEST(x.code == 125);
  BOOST_TEST(x.err.find("No space left on device; sandbox ") != std::string::npos, x.err);
  BOOST_TEST(x.err.ends_with(" was stopped again\n"), x.err);
  BOOST_TEST(json_of({"ps", "--json"}).empty());

  auto kept = run_by(full, {"create", "--image", "busybox", "--key", "k"});
  BOOST_TEST(kept.code == 125);
  auto id = create({"--key", "k"});
  BOOST_TEST(kept.err.find("sandbox " + id + " stays, --key k names it again") != std::string::npos,
             kept.err);
  BOOST_TEST(json_of({"ps", "--json"}).size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_background_process_whose_id_cannot_be_told_is_killed, client_rig) {
  auto id = create();
  auto x = run_by(full, {"exec", "-d", id, "sleep", "600"});
  BOOST_TEST(x.code == 125);
  BOOST_TEST(x.err.find("No space left on device; process ") != std::string::npos, x.err);
  BOOST_TEST(x.err.ends_with(" was killed\n"), x.err);
  BOOST_TEST(json_of({"ps", id, "--json"}).empty());
  BOOST_TEST(run({"exec", id, "pidof", "sleep"}).code == 1);
}

BOOST_FIXTURE_TEST_CASE(messages_that_cannot_be_written_change_no_exit_code, client_rig) {
  auto id = create();
  constexpr auto mute = "exec \"$@\" 2>/dev/full";
  BOOST_TEST(run_by(mute, {"exec", id, "no-such-program"}).code == 127);
  BOOST_TEST(run_by(mute, {"exec", "--deadline", "0.1", id, "sleep", "600"}).code == 124);
  BOOST_TEST(run_by(mute, {"exec", "nobody", "true"}).code == 125);
  BOOST_TEST(run_by(mute, {"no-such-command"}).code == 125);
}

BOOST_FIXTURE_TEST_CASE(ids_are_spelled_alike_everywhere_and_are_text_in_json, client_rig) {
  auto id = create({"--job", "train"});
  BOOST_TEST(json_of({"ps", "--json"})[0]["id"] == id);
  BOOST_TEST(json_of({"job", "ls", "train", "--json"})[0]["id"] == id);
  auto process = line_of({"exec", "-d", id, "sleep", "600"});
  BOOST_TEST(process.find_first_not_of("0123456789") == std::string::npos, process);
  BOOST_TEST(run({"ps", id}).out.find("\n" + process + " ") != std::string::npos);
  auto listed = json_of({"ps", id, "--json"});
  BOOST_TEST_REQUIRE(listed.size() == 1u);
  BOOST_TEST(listed[0]["id"] == process);
  BOOST_TEST(run({"kill", id, process}).code == 0);
  BOOST_TEST(run({"attach", id, process}).code == 137);
  auto text = run({"events", "train"}).out;
  BOOST_TEST(text.find("  " + id + "  ") != std::string::npos, text);
  BOOST_TEST(text.find("process_started " + process + "\n") != std::string::npos, text);
  BOOST_TEST(text.find("process_ended " + process + "  ") != std::string::npos, text);
  auto lines = run({"events", "--json", "train"}).out;
  BOOST_TEST(lines.find("\"exec\":\"" + process + "\"") != std::string::npos, lines);
}

BOOST_FIXTURE_TEST_CASE(what_an_agent_named_does_nothing_to_the_terminal, client_rig) {
  auto id = create();
  const std::string bell = "\x1b]0;owned\x07\x1b[2J";
  const std::string odd = "\xc3\xa9\xff\\";
  run({"exec", "-d", "--name", "web", id, "sh", "-c", "sleep 600", bell, odd});
  auto table = run({"ps", id}).out;
  BOOST_TEST(table.find('\x1b') == std::string::npos, table);
  BOOST_TEST(table.find('\x07') == std::string::npos, table);
  BOOST_TEST(table.find("\\x1b]0;owned\\x07\\x1b[2J \xc3\xa9\\xff\\x5c\n") != std::string::npos,
             table);
  // Escaped by JSON's own rules, but for what is no text: that is spelled as in the table.
  auto listed = json_of({"ps", id, "--json"});
  BOOST_TEST_REQUIRE(listed.size() == 1u);
  BOOST_TEST(listed[0]["argv"][4] == "\xc3\xa9\\xff\\x5c");
  BOOST_TEST(listed[0]["argv"][3] == "\\x1b]0;owned\\x07\\x1b[2J");
  BOOST_TEST(listed[0]["escaped"] == nlohmann::json({"argv"}));
  run({"kill", id, "web"});
  run({"rm", id, "web"});
  run({"exec", "-d", id, "sh", "-c", "sleep 600", bell, "\xc3\xa9\\"});
  listed = json_of({"ps", id, "--json"});
  BOOST_TEST(listed[0]["argv"][3] == bell);
  BOOST_TEST(listed[0]["argv"][4] == "\xc3\xa9\\");
  BOOST_TEST(!listed[0].contains("escaped"));

  for (const auto& line : {command_line{"exec", id, bell},
                           {"exec", "-u", bell, id, "true"},
                           {"exec", "-w", "/" + bell, id, "true"},
                           {"attach", id, bell},
                           {"create", "--image", bell},
                           {"exec", bell, "true"}}) {
    auto x = run(line);
    BOOST_TEST(x.code != 0);
    BOOST_TEST(x.err.find('\x1b') == std::string::npos, x.err);
    BOOST_TEST(x.err.find("\\x1b") != std::string::npos, x.err);
    BOOST_TEST(x.err.find("\\x5c") == std::string::npos, x.err);
  }
  for (const auto& line : {command_line{"events", "cli"}, {"events", "cli", "--json"}}) {
    auto x = run(line);
    BOOST_TEST(x.code == 0, x.err);
    BOOST_TEST(x.out.find('\x1b') == std::string::npos, x.out);
  }
}

BOOST_AUTO_TEST_SUITE_END()
