// Processes that end: no code is lost, no zombie is left, and a number used again is nobody's old
// job.
#include "bench/demo/census.hpp"
#include "tests/scenarios/exec_rig.hpp"

#include <sys/utsname.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <unistd.h>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

std::string zombies(const sandbox& box) {
  auto all = value(box.exec(exec_spec::shell("cat /proc/[0-9]*/stat 2>/dev/null"))).out;
  return all.find(") Z ") == std::string::npos ? std::string{} : all;
}

/// Since Linux 6.14 each pid namespace has its own limit; before, there was one for the machine.
bool namespaces_have_a_pid_max() {
  utsname kernel{};
  ::uname(&kernel);
  int major = 0, minor = 0;
  std::sscanf(kernel.release, "%d.%d", &major, &minor);
  return major > 6 || (major == 6 && minor >= 14);
}

/// In the pid namespace of the sandbox whose dsec-init this is.
bool set_pid_max(int init, int pid_max) {
  std::ifstream children{fmt::format("/proc/{0}/task/{0}/children", init)};
  std::string reaper, name;
  while (name != "dsec-reaper" && children >> reaper)
    std::ifstream{fmt::format("/proc/{}/comm", reaper)} >> name;
  const int space = ::open(fmt::format("/proc/{}/ns/pid", reaper).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0)
    return false;
  const auto text = std::to_string(pid_max);
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::setns(space, CLONE_NEWPID) != 0)
      ::_exit(1);
    const pid_t inner = ::fork();
    if (inner == 0) {
      const int file = ::open("/proc/sys/kernel/pid_max", O_WRONLY);
      ::_exit(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    int status = 1;
    ::waitpid(inner, &status, 0);
    ::_exit(status == 0 ? 0 : 1);
  }
  ::close(space);
  int status = 1;
  ::waitpid(outer, &status, 0);
  return status == 0;
}

std::string pid_max_of_the_machine() {
  std::string text;
  std::ifstream{"/proc/sys/kernel/pid_max"} >> text;
  return text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec_process, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(five_thousand_commands_at_once_all_tell_their_own_code, exec_rig) {
  auto from = at.environment();
  from.limits.processes = 1000;
  from.limits.memory_bytes = 512 << 20;
  auto box = create(from);
  constexpr int total = 5000, at_once = 200;
  std::vector<future<exec_result>> running;
  int wrong = 0;
  auto check = [&](int i) {
    auto x = value(running[i]);
    wrong += x.outcome.kind != outcome_kind::exited || x.outcome.code != i % 256;
  };
  for (int i = 0; i < total; ++i) {
    if (i >= at_once)
      check(i - at_once);
    running.push_back(box.exec(exec_spec::shell(fmt::format("exit {}", i % 256))));
  }
  for (int i = total - at_once; i < total; ++i)
    check(i);
  BOOST_TEST(wrong == 0);
  BOOST_TEST(falls_silent(box, 1s));
  BOOST_TEST(zombies(box) == "");
}

BOOST_FIXTURE_TEST_CASE(a_thousand_daemons_that_die_later_leave_no_zombie, exec_rig) {
  auto from = at.environment();
  from.limits.processes = 3000;
  from.limits.memory_bytes = 1 << 30;
  auto box = create(from);
  auto x = value(box.exec(exec_spec::shell(
    "i=0; while [ $i -lt 1000 ]; do (setsid sleep 2 &); i=$((i+1)); done; echo made")));
  BOOST_TEST(x.out == "made\n");
  BOOST_TEST(value(box.stats()).processes > 0u);
  // A zombie counts as a process until somebody has reaped it.
  BOOST_TEST(falls_silent(box, 20s));
  BOOST_TEST(zombies(box) == "");
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
}

BOOST_FIXTURE_TEST_CASE(a_number_that_is_used_again_is_not_the_job_that_had_it, exec_rig) {
  if (!namespaces_have_a_pid_max()) {
    BOOST_TEST_MESSAGE("skipped: this kernel has one pid_max for the machine (Linux < 6.14)");
    return;
  }
  auto box = create();
  auto init = demo::init_pids({at.run_dir, at.data_dir}).at(box.id().str());
  const auto of_machine = pid_max_of_the_machine();
  BOOST_TEST_REQUIRE(set_pid_max(init, 400));
  BOOST_TEST_REQUIRE(pid_max_of_the_machine() == of_machine);
  // Numbers up to 300 are given out once only.
  BOOST_TEST(
    value(box.exec(exec_spec::shell("i=0; while [ $i -lt 320 ]; do (:); i=$((i+1)); done"))).ok());
  auto job = box.start(step(1, exec_spec::shell("echo $$; exit 7")));
  auto ended = value(job.result());
  BOOST_TEST(ended.outcome.code == 7);
  auto pid = ended.out.substr(0, ended.out.find('\n'));
  auto heard = std::make_shared<listener>();
  auto other =
    box.start(exec_spec{{"/bin/sh", "-c",
                         "while :; do sleep 600 & if [ $! = $0 ]; then echo held; wait; exit; fi; "
                         "kill -9 $!; wait $!; done 2>/dev/null",
                         pid}},
              heard);
  BOOST_TEST_REQUIRE(heard->hears("held\n"));
  job.signal(SIGKILL);
  job.cancel();
  BOOST_TEST(value(box.exec(exec_spec{{"kill", "-0", pid}})).ok());
  BOOST_TEST(value(box.exec(exec_spec{{"cat", "/proc/" + pid + "/comm"}})).out == "sleep\n");
  auto known = value(box.step(1));
  BOOST_TEST_REQUIRE(known.result.has_value());
  BOOST_TEST((known.result->outcome.kind == outcome_kind::exited));
  BOOST_TEST(known.result->outcome.code == 7);
  BOOST_TEST(!other.result().ready());
  other.cancel();
  BOOST_TEST((value(other.result()).outcome.kind == outcome_kind::cancelled));
  BOOST_TEST(falls_silent(box, 1s));
}

BOOST_AUTO_TEST_SUITE_END()
