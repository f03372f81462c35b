#include "bench/demo/child.hpp"
#include "bench/demo/ledger_watch.hpp"
#include "bench/waits.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace dsec;
using namespace dsec::demo;

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 20s;

child shell(const std::string& script) {
  auto started = child::start({{"/bin/sh", "-c", script}});
  BOOST_TEST_REQUIRE(bool(started), (started ? "" : started.error().message));
  return std::move(*started);
}

} // namespace

BOOST_AUTO_TEST_SUITE(children)

BOOST_AUTO_TEST_CASE(the_end_is_told_by_code_or_signal) {
  BOOST_TEST(shell("exit 7").wait(bench::within(patience)).value_or(-1) == 7);
  BOOST_TEST(shell("kill -TERM $$").wait(bench::within(patience)).value_or(-1) == 128 + SIGTERM);
}

BOOST_AUTO_TEST_CASE(one_that_runs_on_is_not_waited_for_longer_than_asked) {
  auto x = shell("exec sleep 600");
  BOOST_TEST(!x.wait(bench::within(10ms)));
  x.crash();
  BOOST_TEST(x.ended().value_or(-1) == 128 + SIGKILL);
}

BOOST_AUTO_TEST_CASE(a_program_that_cannot_be_started_says_why) {
  auto x = child::start({{"/no/such/program"}});
  BOOST_TEST_REQUIRE(!x);
  BOOST_TEST(x.error().message.find("/no/such/program") != std::string::npos, x.error().message);
  BOOST_TEST(x.error().message.find("No such file") != std::string::npos, x.error().message);
}

BOOST_AUTO_TEST_CASE(variables_are_added_to_ours) {
  ::setenv("DSEC_TEST_OURS", "ours", 1);
  ::setenv("DSEC_TEST_BOTH", "ours", 1);
  auto x = child::start({{"/bin/sh", "-c", "test $DSEC_TEST_OURS$DSEC_TEST_BOTH = ourstheirs"},
                         {{"DSEC_TEST_BOTH", "theirs"}}});
  BOOST_TEST_REQUIRE(bool(x));
  BOOST_TEST(x->wait(bench::within(patience)).value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(a_killed_driver_takes_its_programs_along) {
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const bench::fd says{ends[1]};
  const bench::fd said{ends[0]};
  auto driver = ::fork();
  if (driver == 0) {
    auto trainer = child::start({{"/bin/sleep", "600"}});
    auto pid = trainer ? trainer->pid() : -1;
    if (::write(says.get(), &pid, sizeof pid) == sizeof pid)
      ::pause();
    ::_exit(1);
  }
  pid_t trainer = -1;
  BOOST_TEST_REQUIRE(::read(said.get(), &trainer, sizeof trainer) == ssize_t{sizeof trainer});
  BOOST_TEST_REQUIRE(trainer > 0);
  auto alive = bench::watch_process(trainer);
  BOOST_TEST_REQUIRE(alive.get() >= 0);
  ::kill(driver, SIGKILL);
  ::waitpid(driver, nullptr, 0);
  BOOST_TEST(bench::wait_readable(alive.get(), bench::within(patience)));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ledger_at_work)

BOOST_AUTO_TEST_CASE(what_another_process_writes_is_told_as_it_comes) {
  temporary_folder folder;
  const auto& path = folder.path();
  auto file = path / "ledger.jsonl";
  ledger_watch ledger{file};
  BOOST_TEST_REQUIRE(::mkfifo((path / "go").c_str(), 0600) == 0);
  auto trainer = child::start({{"/bin/sh", "-c", R"(cd "$0"
      echo '{"event":"acked","sandbox":"a","step":1}' >> ledger.jsonl
      read go < go
      echo '{"event":"preempted"}' >> ledger.jsonl
      echo '{"event":"acked","sandbox":"a","step":2}' >> ledger.jsonl
      printf '{"event":"acked"' >> ledger.jsonl)",
                                path.string()}});
  BOOST_TEST_REQUIRE(bool(trainer));
  auto until = bench::within(patience);
  BOOST_TEST(ledger.wait(*trainer, until));
  BOOST_TEST(ledger.acked() == 1u);
  BOOST_TEST(!ledger.preempted());
  std::ofstream{path / "go"} << "go\n";
  while (ledger.wait(*trainer, until))
    ;
  BOOST_TEST(ledger.acked() == 2u);
  BOOST_TEST(ledger.preempted());
  BOOST_TEST(ledger.acked_since_preempted() == 1u);
  BOOST_TEST(trainer->ended().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_acknowledged_again_counts_once) {
  temporary_folder folder;
  const auto& path = folder.path();
  auto file = path / "ledger.jsonl";
  ledger_watch ledger{file};
  auto trainer =
    shell("for i in 1 2; do echo '{\"event\":\"acked\",\"sandbox\":\"a\",\"step\":1}'; "
          "done >> "
          + file.string());
  auto until = bench::within(patience);
  while (ledger.wait(trainer, until))
    ;
  BOOST_TEST(ledger.acked() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
