// Processes with a terminal of the sandbox's own.
#define BOOST_TEST_MODULE init_terminal
#include "tests/kernel/init/processes.hpp"

#include <algorithm>
#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

const spawn_options on_terminal{.terminal = std::pair{24u, 80u}};

std::string without_returns(std::string text) {
  std::erase(text, '\r');
  return text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(terminals, *utf::precondition(possible))

BOOST_FIXTURE_TEST_CASE(the_terminal_is_the_sandboxs_own_and_controls_the_session,
                        processes_fixture) {
  // The seventh field is the number of the controlling terminal; 136 is the kind of those of pts.
  auto process = shell(1,
                       "tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; "
                       "set -- $(cat /proc/self/stat); [ $(($7 >> 8)) = 136 ] && echo controls",
                       on_terminal);
  auto x = wait(process);
  BOOST_TEST(x.kind == kind::EXITED);
  const auto text = without_returns(x.out);
  BOOST_TEST(text.starts_with("/dev/pts/"), text);
  BOOST_TEST(text.find("\nall\ncontrols\n") != text.npos, text);
  BOOST_TEST(x.err == "");
}

BOOST_FIXTURE_TEST_CASE(its_size_is_what_was_asked_for_and_a_change_is_signalled,
                        processes_fixture) {
  spawn_options wanted;
  wanted.terminal = {33, 99};
  auto process = shell(1,
                       "stty size; trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; "
                       "done",
                       wanted);
  seen out, err;
  auto watching = attach(process, out, err);
  BOOST_TEST_REQUIRE(comes(out, "ready"));
  BOOST_TEST(out.bytes.find("33 99") != std::string::npos, out.bytes);
  resize(process, 44, 111);
  BOOST_TEST(comes(out, "44 111"));
  auto empty = error_of([&] { resize(process, 0, 5); });
  BOOST_TEST((empty.code == errc::invalid_argument), empty.message);
  kill(process);
  wait(process);
  auto plain = spawn(2, {"/bin/busybox", "sleep", "600"});
  auto none = error_of([&] { resize(plain, 10, 10); });
  BOOST_TEST((none.code == errc::invalid_state), none.message);
}

BOOST_FIXTURE_TEST_CASE(what_is_typed_is_echoed_read_and_can_interrupt, processes_fixture) {
  auto process = spawn(1, {"/bin/sh"}, on_terminal);
  seen out, err;
  auto watching = attach(process, out, err);
  input(process, "echo $((6*7))\n");
  BOOST_TEST(comes(out, "42\r\n"));
  input(process, "sleep 600; echo code $?\n");
  BOOST_TEST(comes(out, "sleep 600"));
  // Until it sleeps, the key would be the shell's.
  BOOST_TEST(client.shell("while ! pidof sleep >/dev/null; do sleep 0.01; done").code == 0);
  input(process, "\x03");
  input(process, "echo after $((1+1))\n");
  BOOST_TEST(comes(out, "after 2"));
  input(process, "exit 5\n");
  BOOST_TEST(wait(process).code == 5);
}

BOOST_FIXTURE_TEST_CASE(closing_input_is_the_end_of_file_of_a_terminal, processes_fixture) {
  auto process = spawn(1, {"/bin/busybox", "cat"}, on_terminal);
  input(process, "a line and a half\nhalf", true);
  auto x = wait(process);
  BOOST_TEST(x.kind == kind::EXITED);
  BOOST_TEST(x.code == 0);
  BOOST_TEST(without_returns(x.out).find("a line and a half\n") != std::string::npos, x.out);
}

BOOST_FIXTURE_TEST_CASE(another_user_owns_the_terminal_it_gets, processes_fixture) {
  spawn_options wanted = on_terminal;
  wanted.command.user = "agent";
  auto process = shell(1, "id -u; stat -c '%u:%g:%a' $(tty); echo again > $(tty)", wanted);
  const auto x = wait(process);
  const auto text = without_returns(x.out);
  BOOST_TEST(text == "1000\n1000:5:620\nagain\n", text);
}

BOOST_FIXTURE_TEST_CASE(a_mebibyte_through_a_raw_terminal_is_byte_exact, processes_fixture) {
  auto process = shell(1, "stty raw -echo; echo ready; head -c 1048576 | sha256sum", on_terminal);
  seen out, err;
  auto watching = attach(process, out, err);
  BOOST_TEST_REQUIRE(comes(out, "ready"));
  std::string bytes(1 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  auto plain = spawn(2, {"/bin/busybox", "sha256sum"}, {.keep_input = true});
  for (std::size_t at = 0; at < bytes.size(); at += 65536) {
    input(process, bytes.substr(at, 65536));
    input(plain, bytes.substr(at, 65536), at + 65536 == bytes.size());
  }
  const auto digest = wait(plain).out;
  BOOST_TEST(comes(out, digest.substr(0, 64)));
}

BOOST_FIXTURE_TEST_CASE(terminals_of_ended_processes_are_given_back, processes_fixture) {
  for (std::uint64_t id = 1; id <= 50; ++id) {
    auto process = shell(id, "tty", on_terminal);
    wait(process);
    remove(process);
  }
  auto last = shell(51, "tty", on_terminal);
  const auto text = without_returns(wait(last).out);
  // The kernel hands out the lowest free number.
  BOOST_TEST(text.size() == std::string{"/dev/pts/0\n"}.size(), text);
}

BOOST_AUTO_TEST_SUITE_END()
