// Sessions: shells on terminals of their own.
#include "tests/scenarios/process_rig.hpp"
#include "tests/scenarios/supervisor.hpp"

#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

BOOST_AUTO_TEST_SUITE(session_terminal, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(several_sessions_at_once_have_a_terminal_each, exec_rig) {
  auto box = create();
  constexpr int count = 8;
  std::vector<process> shells;
  std::vector<std::shared_ptr<watcher>> screens;
  std::vector<process_attachment> attached;
  for (int i = 0; i < count; ++i) {
    shells.push_back(value(box.spawn(session({"sh"}, fmt::format("s{}", i)))));
    screens.push_back(std::make_shared<watcher>());
    attached.push_back(shells.back().attach(screens.back()));
  }
  for (int i = 0; i < count; ++i)
    done(shells[i].write(fmt::format("mine={}; echo $(tty) is $((mine+100))\n", i)));
  for (int i = 0; i < count; ++i)
    BOOST_TEST(screens[i]->sees(fmt::format("/dev/pts/{} is {}\r\n", i, i + 100)),
               screens[i]->out());
  // Each remembers its own.
  for (int i = 0; i < count; ++i)
    done(shells[i].write("echo still $((mine+200)); exit $mine\n"));
  for (int i = 0; i < count; ++i) {
    BOOST_TEST(screens[i]->sees(fmt::format("still {}\r\n", i + 200)));
    BOOST_TEST(value(shells[i].wait()).outcome.code == i);
  }
}

BOOST_FIXTURE_TEST_CASE(a_resize_is_seen_inside_and_signalled, exec_rig) {
  auto box = create();
  auto shell = value(box.spawn(session({"sh"}, "", {30, 100})));
  auto screen = std::make_shared<watcher>();
  auto attached = shell.attach(screen);
  done(shell.write("stty size\n"));
  BOOST_TEST_REQUIRE(screen->sees("30 100\r\n"));
  done(shell.resize({50, 132}));
  done(shell.write("stty size\n"));
  BOOST_TEST(screen->sees("50 132\r\n"), screen->out());
  BOOST_TEST((error_of(shell.resize({0, 1})).code == errc::invalid_argument));
  auto told = value(box.spawn(
    session({"sh", "-c",
             "trap 'echo winch $(stty size)' WINCH; echo ready; while :; do sleep 0.05; done"})));
  auto second = std::make_shared<watcher>();
  auto also = told.attach(second);
  BOOST_TEST_REQUIRE(second->sees("ready"));
  done(told.resize({51, 133}));
  BOOST_TEST(second->sees("winch 51 133\r\n"), second->out());
}

BOOST_FIXTURE_TEST_CASE(keys_control_jobs_and_end_of_input_ends_a_shell, exec_rig) {
  auto box = create();
  auto shell = value(box.spawn(session({"sh"})));
  auto screen = std::make_shared<watcher>();
  auto attached = shell.attach(screen);
  done(shell.write("sleep 611\n"));
  BOOST_TEST_REQUIRE(comes_to(box, "sleep", 1, 20s));
  done(shell.write("\x1a")); // ctrl-z
  BOOST_TEST(screen->sees("Stopped"), screen->out());
  done(shell.write("jobs | grep -c 61''1\n"));
  BOOST_TEST(screen->sees("\n1\r\n"), screen->out());
  // The shell does not say when the job has the terminal again, and a key that comes before takes
  // the rest of the shell's line with it: then the job is asked for again.
  bool key = false;
  BOOST_TEST_REQUIRE(bench::ask_until(bench::within(20s), 50ms, [&] {
    done(shell.write(key ? "\x03" : "fg\n"));
    key = !key;
    return count_of(box, "sleep") == 0;
  }));
  done(shell.write("", true));
  BOOST_TEST((value(shell.wait()).outcome.kind == outcome_kind::exited));
  BOOST_TEST((error_of(shell.write("x")).code == errc::invalid_state));
}

BOOST_FIXTURE_TEST_CASE(a_session_ends_with_its_shell_whatever_still_runs_in_it, exec_rig) {
  auto box = create();
  const auto supervisor = supervisor_of(at, box);
  // Once, so that what stays open for good is open.
  auto first = value(box.spawn(session({"sh", "-c", "true"})));
  value(first.wait());
  done(first.remove());
  const auto before = descriptors_of(supervisor);
  for (int i = 0; i < 20; ++i) {
    auto shell = value(box.spawn(session({"sh"})));
    auto screen = std::make_shared<watcher>();
    auto attached = shell.attach(screen);
    // Jobs that hold the terminal open, one of them out of the shell's reach.
    done(shell.write("sleep 621 & setsid sleep 622 & (setsid sleep 623 &) ; exit 3\n"));
    BOOST_TEST(value(shell.wait()).outcome.code == 3);
    done(attached.ended());
    done(shell.remove());
  }
  BOOST_TEST(falls_silent(box, 5s));
  // dsec-init lets go a turn after it has answered.
  BOOST_TEST(bench::ask_until(bench::within(5s), 10ms,
                              [&] { return descriptors_of(supervisor) <= before; }),
             descriptors_of(supervisor) << " of " << before);
}

BOOST_FIXTURE_TEST_CASE(another_user_has_a_terminal_of_his_own_and_the_common_devices, exec_rig) {
  auto box = create();
  auto wanted = session({"sh", "-c",
                         "id -u; echo again > /dev/tty; stat -c %u $(tty); echo x > /dev/null && "
                         "head -c 4 /dev/zero | wc -c; stat -c %a /dev/full /dev/urandom"});
  wanted.command.user = "agent";
  auto x = value(value(box.spawn(wanted)).wait());
  BOOST_TEST(without_returns(x.out) == "1000\nagain\n1000\n4\n666\n666\n");
}

BOOST_AUTO_TEST_SUITE_END()
