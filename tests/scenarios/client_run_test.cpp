// A `dsec run` that is killed takes its sandbox along, and a follower hears of the end of its job.
#include "tests/scenarios/client_rig.hpp"
#include "tests/scenarios/residue.hpp"

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// `dsec run` in the midst of its command.
struct running {
  child_process client;

  running(const client_rig& at, std::vector<std::string> options)
    : client{at.words(with(std::move(options)))} {
    BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
  }

  void kill() {
    client.kill(SIGKILL);
    client.wait();
  }

private:
  static std::vector<std::string> with(std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--image", "busybox"});
    options.insert(options.end(), {"sh", "-c", "echo begun; sleep 600 & wait"});
    return options;
  }
};

std::string cause_of_the_only_one(const client_rig& at) {
  auto all = at.json_of({"ps", "--all", "--json"});
  BOOST_TEST_REQUIRE(all.size() == 1u);
  return all[0]["cause"];
}

} // namespace

BOOST_AUTO_TEST_SUITE(client_run, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_run_that_is_killed_takes_its_sandbox_along, client_rig) {
  {
    // What else could end it is switched off.
    running one{*this, {"--idle", "0"}};
    one.kill();
  }
  BOOST_TEST(is_empty_within(20s));
  BOOST_TEST(cause_of_the_only_one(*this) == "stopped");
  BOOST_TEST(residue(installation_of(machine())) == "");
}

BOOST_FIXTURE_TEST_CASE(a_run_that_is_killed_while_its_job_is_preempted_takes_its_sandbox_along,
                        client_rig) {
  running one{*this, {}};
  BOOST_TEST(run({"job", "preempt", "--until-resume", "cli"}).code == 0);
  one.kill();
  BOOST_TEST(is_empty_within(20s));
}

BOOST_FIXTURE_TEST_CASE(a_run_that_is_killed_with_the_runtime_leaves_its_sandbox_to_its_idle_clock,
                        client_rig) {
  {
    running one{*this, {"--idle", "1"}};
    kill_server();
    one.kill();
  }
  start();
  BOOST_TEST(is_empty_within(20s));
  BOOST_TEST(cause_of_the_only_one(*this) == "idle");
  BOOST_TEST(residue(installation_of(machine())) == "");
}

BOOST_FIXTURE_TEST_CASE(a_run_has_an_idle_clock_of_a_minute_unless_it_is_told_otherwise,
                        client_rig) {
  auto clocks_of = [&](std::vector<std::string> options) {
    running one{*this, std::move(options)};
    auto all = json_of({"ps", "--json"});
    BOOST_TEST_REQUIRE(all.size() == 1u);
    one.kill();
    BOOST_TEST(is_empty_within(20s));
    return all[0]["clocks"];
  };
  auto own = clocks_of({});
  BOOST_TEST(own["idle_timeout_ms"] == 60'000);
  BOOST_TEST(own["on_idle"] == "stop");
  auto told = clocks_of({"--idle", "7", "--on-idle", "reclaim"});
  BOOST_TEST(told["idle_timeout_ms"] == 7'000);
  BOOST_TEST(told["on_idle"] == "reclaim");
}

BOOST_FIXTURE_TEST_CASE(a_follower_ends_well_when_its_job_is_closed_and_has_told_its_last_event,
                        client_rig) {
  auto id = create({"--job", "train"});
  child_process follower{words({"events", "--follow", "train"})};
  BOOST_TEST(follower.line().value_or("").find("created") != std::string::npos);
  BOOST_TEST(run({"exec", id, "true"}).code == 0);
  BOOST_TEST(run({"job", "close", "train"}).code == 0);
  std::string last;
  while (auto line = follower.line())
    last = *line;
  BOOST_TEST(last.find("stopped") != std::string::npos, last);
  BOOST_TEST(follower.wait() == 0);

  // One that comes later is told all, and ends as well.
  auto late = run({"events", "--follow", "train"});
  BOOST_TEST(late.code == 0, late.err);
  BOOST_TEST(late.out == run({"events", "train"}).out);
  BOOST_TEST(late.out.ends_with(last + "\n"));

  BOOST_TEST(run({"job", "open", "empty"}).code == 0);
  child_process waiting{words({"events", "--follow", "empty"})};
  BOOST_TEST(run({"job", "close", "empty"}).code == 0);
  BOOST_TEST(waiting.wait() == 0);
}

BOOST_FIXTURE_TEST_CASE(a_follower_goes_on_with_a_job_that_is_opened_anew, client_rig) {
  create({"--job", "train"});
  BOOST_TEST(run({"job", "close", "train"}).code == 0);
  BOOST_TEST(run({"job", "open", "train"}).code == 0);
  child_process follower{words({"events", "--follow", "train"})};
  auto again = create({"--job", "train"});
  bool told = false;
  while (!told)
    if (auto line = follower.line())
      told = line->find(again) != std::string::npos;
    else
      break;
  BOOST_TEST(told);
  BOOST_TEST(run({"job", "close", "train"}).code == 0);
  while (follower.line()) {
  }
  BOOST_TEST(follower.wait() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
