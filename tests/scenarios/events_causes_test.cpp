// Why a sandbox ended: its info, `dsec ps --all` and its job's events say the same, whoever died
// since.
#include "bench/demo/census.hpp"
#include "bench/waits.hpp"
#include "tests/scenarios/events_rig.hpp"
#include "tests/scenarios/residue.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>
#include <map>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;
namespace utf = boost::unit_test;

namespace {

pid_t init_of(const sandbox& box) {
  return demo::init_pids(installation_of(machine())).at(box.id().str());
}

/// PID 1 of a sandbox, as the host sees it.
pid_t reaper_of(const sandbox& box) {
  std::ifstream children{fmt::format("/proc/{0}/task/{0}/children", init_of(box))};
  for (pid_t child = 0; children >> child;) {
    std::string name;
    std::getline(std::ifstream{fmt::format("/proc/{}/comm", child)}, name);
    if (name == "dsec-reaper")
      return child;
  }
  return 0;
}

void kill_process(pid_t pid) {
  BOOST_TEST_REQUIRE(pid > 1);
  ::kill(pid, SIGKILL);
}

/// Cause and detail.
using ending = std::pair<std::string, std::string>;

/// What is said of the sandboxes of a job that have ended, by index.
struct endings {
  playground& at = machine();
  std::filesystem::path state = at.new_state();

  std::map<std::uint64_t, ending> of_ps() const {
    auto ps = run_program({at.programs / "dsec", "--state-dir", state, "ps", "--all", "--json"});
    BOOST_TEST_REQUIRE(ps.code == 0, ps.err);
    std::map<std::uint64_t, ending> all;
    for (const auto& x : nlohmann::json::parse(ps.out)) {
      BOOST_TEST(x["state"].get<std::string>() == "terminated");
      all[x["index"].get<std::uint64_t>()] = {x["cause"].get<std::string>(),
                                              x["detail"].get<std::string>()};
    }
    return all;
  }

  static std::map<std::uint64_t, ending> of_info(const job& of) {
    std::map<std::uint64_t, ending> all;
    for (const auto& x : value(of.list(true)))
      all[x.index] = {std::string{to_string(x.cause)}, x.detail};
    return all;
  }

  static std::map<std::uint64_t, ending> of_events(const job& of) {
    std::map<std::uint64_t, ending> all;
    for (const auto& x : kept_events(of))
      if (x.kind == event_kind::stopped)
        all[x.index] = {std::string{to_string(x.cause)}, x.detail};
    return all;
  }

  void expect_all_say(const job& of, const std::map<std::uint64_t, ending>& expected) const {
    BOOST_TEST((of_ps() == expected));
    BOOST_TEST((of_info(of) == expected));
    BOOST_TEST((of_events(of) == expected));
  }
};

/// One job whose sandboxes end in every way that there is.
struct ended_job : endings {
  std::unique_ptr<runtime> rt = at.open(state);
  job owner = value(rt->open_job("train", no_lease()));
  heard_events heard;
  event_subscription reading = owner.follow(1, heard.listener());

  sandbox create(const sandbox_clocks& clocks = {}) {
    return value(owner.create({at.environment(), {}, clocks}));
  }

  void wait_for_the_end(const sandbox& of) {
    BOOST_TEST_REQUIRE(heard.wait_for(event_kind::stopped, of));
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(events_causes, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(every_cause_is_told_alike_and_survives_its_sandbox_and_the_node,
                        ended_job) {
  done(create().stop());

  auto destroyed = create();
  auto flying = destroyed.exec(exec_spec{{"sleep", "600"}});
  BOOST_TEST_REQUIRE(heard.wait_for(event_kind::exec_started, destroyed));
  kill_process(reaper_of(destroyed));
  BOOST_TEST(to_string(value(flying).outcome.kind) == "self_inflicted");
  // Whoever has that answer never sees the sandbox alive again.
  auto seen = value(destroyed.info());
  BOOST_TEST(to_string(seen.cause) == "self_inflicted");
  BOOST_TEST(to_string(seen.state) != "running");

  auto lost = create();
  kill_process(init_of(lost));

  environment missing = at.environment();
  missing.layers = {layer_digest{"sha256-" + std::string(64, '0')}};
  BOOST_TEST(!owner.create({missing, {}, {}}).get());

  auto lived = create({.time_to_live = 1s});
  auto spent = create({.rollout_budget = 1s});
  auto unused = create({.idle_timeout = 500ms, .on_idle = idle_action::stop});
  for (const auto& box : {destroyed, lost, lived, spent, unused})
    wait_for_the_end(box);

  auto said = of_events(owner);
  const std::map<std::uint64_t, std::string> causes{
    {0, "stopped"},      {1, "self_inflicted"}, {2, "infrastructure"},
    {3, "start_failed"}, {4, "time_to_live"},   {5, "rollout_budget"},
    {6, "idle"}};
  BOOST_TEST_REQUIRE(said.size() == causes.size());
  for (const auto& [index, cause] : causes) {
    BOOST_TEST(said[index].first == cause);
    BOOST_TEST(!(cause != "stopped" && said[index].second.empty()), cause);
  }
  expect_all_say(owner, said);

  rt.reset();
  {
    child_process served{{at.programs / "dsec", "--state-dir", state, "--data-dir", at.data_dir,
                          "--run-dir", at.run_dir, "serve", "--warm", "0"}};
    BOOST_TEST_REQUIRE(served.line().value_or("").starts_with("dsec: ready"));
    BOOST_TEST((of_ps() == said));
    served.kill(SIGKILL);
    served.wait();
  }
  rt = at.open(state);
  owner = value(rt->find_job("train"));
  expect_all_say(owner, said);

  // Beyond the bound of tombstones the events are what is left.
  rt.reset();
  auto options = at.options();
  options.tombstones = 2;
  auto bounded = runtime::open(state, options);
  BOOST_TEST_REQUIRE(bool(bounded));
  rt = std::move(*bounded);
  owner = value(rt->find_job("train"));
  BOOST_TEST(value(owner.list(true)).size() == 2u);
  auto gone = rt->find(destroyed.id()).get();
  BOOST_TEST((!gone && gone.error().code == errc::not_found));
  BOOST_TEST((of_events(owner) == said));
}

BOOST_FIXTURE_TEST_CASE(a_lease_that_ran_out_without_a_node_is_told_by_the_next_one, endings) {
  std::string id;
  {
    child_process trainer{
      {at.programs / "sdk_trainer", state, at.data_dir, at.run_dir, at.layer.str(), "lease"}};
    id = trainer.line().value_or("");
    BOOST_TEST_REQUIRE(!id.empty());
    trainer.kill(SIGKILL);
    trainer.wait();
  }
  BOOST_TEST_REQUIRE(bench::wait_for_file(at.run_dir / (id + ".end"), bench::within(30s)));
  auto rt = at.open(state);
  auto owner = value(rt->find_job("rollout"));
  heard_events heard;
  auto reading = owner.follow(1, heard.listener());
  BOOST_TEST_REQUIRE(heard.wait([](const job_event& x) { return x.kind == event_kind::stopped; }));
  auto said = of_events(owner);
  BOOST_TEST(said[0].first == "lease_expired");
  expect_all_say(owner, said);
}

BOOST_AUTO_TEST_SUITE_END()
