// Four clocks, each with its own outcome for the command under way and its own cause of death.
#include "tests/scenarios/clocks_rig.hpp"

#include <map>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

sandbox_clocks idle(std::chrono::milliseconds after, idle_action then) {
  return {0ms, 0ms, after, then};
}

/// Of `ps --all --json`, by id.
std::map<std::string, nlohmann::json> listed(const clocks_rig& at) {
  std::map<std::string, nlohmann::json> all;
  for (const auto& one : nlohmann::json::parse(at.cli({"ps", "--all", "--json"}).out))
    all[one["id"]] = one;
  return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(clocks_end, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(each_clock_has_an_outcome_and_a_cause_of_its_own, clocks_rig) {
  // A deadline ends its command alone.
  auto late = endless();
  late.deadline = 300ms;
  auto x = value(watch.exec(late));
  BOOST_TEST((x.outcome.kind == outcome_kind::timed_out));
  BOOST_TEST(value(watch.exec(exec_spec{{"true"}})).ok());

  auto mortal = create({500ms});
  auto short_run = create({0ms, 500ms});
  auto unused = create(idle(500ms, idle_action::stop));
  auto of_mortal = mortal.exec(endless());
  auto of_short_run = short_run.exec(endless());
  for (auto [running, kind] :
       {std::pair{of_mortal, outcome_kind::expired}, {of_short_run, outcome_kind::budget_spent}}) {
    auto end = value(running);
    BOOST_TEST((end.outcome.kind == kind), to_string(end.outcome.kind));
    // What it had written until then is not lost with it.
    BOOST_TEST(end.out == "begun\n");
  }
  BOOST_TEST(log.end_of(mortal).detail == "its time to live of 500 ms has passed");
  BOOST_TEST(log.end_of(short_run).detail == "its rollout budget of 500 ms is spent");
  BOOST_TEST(log.end_of(unused).detail == "nobody used it for 500 ms");
  auto all = listed(*this);
  BOOST_TEST(all[mortal.id().str()]["cause"] == "time_to_live");
  BOOST_TEST(all[short_run.id().str()]["cause"] == "rollout_budget");
  BOOST_TEST(all[unused.id().str()]["cause"] == "idle");
  BOOST_TEST(all[watch.id().str()]["cause"] == "none");
  BOOST_TEST(all[mortal.id().str()]["clocks"]["time_to_live_ms"] == 500);
  // Whoever comes later hears the same.
  auto refused = mortal.exec(exec_spec{{"true"}}).get();
  BOOST_TEST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::expired));
  BOOST_TEST(refused.error().message.find("time_to_live") != std::string::npos);
  done(owner.close());
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_FIXTURE_TEST_CASE(a_recorded_step_keeps_the_outcome_that_a_clock_gave_it, clocks_rig) {
  auto box = create({500ms});
  auto spec = endless();
  spec.step = 1;
  BOOST_TEST((value(box.exec(spec)).outcome.kind == outcome_kind::expired));
  log.end_of(box);
  auto steps = value(box.trajectory());
  BOOST_TEST_REQUIRE(steps.size() == 1u);
  BOOST_TEST_REQUIRE(steps[0].result.has_value());
  BOOST_TEST((steps[0].result->outcome.kind == outcome_kind::expired));
  BOOST_TEST(value(box.step(1)).result->out == "begun\n");
}

BOOST_FIXTURE_TEST_CASE(a_clock_that_was_extended_ends_nothing_at_its_old_time, clocks_rig) {
  auto mortal = create({1500ms, 0ms});
  auto short_run = create({0ms, 1500ms});
  auto unused = create(idle(1500ms, idle_action::stop));
  done(mortal.set_clocks({1h}));
  done(short_run.set_clocks({0ms, 1h}));
  done(unused.set_clocks(idle(1h, idle_action::stop)));
  BOOST_TEST((value(mortal.info()).clocks.time_to_live == 1h));
  pass(2500ms);
  for (const auto& box : {mortal, short_run, unused})
    BOOST_TEST((value(box.info()).state == sandbox_state::running));
  auto left = value(mortal.stats()).time_to_live_left;
  BOOST_TEST((left < 1h - 2500ms && left > 1h - 30s), left.count());
  // A cut into the past is the end, at once.
  auto running = mortal.exec(endless());
  done(mortal.set_clocks({1ms}));
  BOOST_TEST((value(running).outcome.kind == outcome_kind::expired));
  BOOST_TEST((log.end_of(mortal).cause == end_cause::time_to_live));
  auto late = mortal.set_clocks({1h}).get();
  BOOST_TEST_REQUIRE(!late);
  BOOST_TEST((late.error().code == errc::expired), late.error().message);
  // No clock at all is a choice as well.
  done(short_run.set_clocks({}));
  BOOST_TEST((value(short_run.stats()).rollout_budget_left == 0ms));
}

BOOST_FIXTURE_TEST_CASE(what_a_clock_cannot_be_is_refused_with_its_name_value_and_limit,
                        clocks_rig) {
  constexpr auto field = "rollout_budget is -1 ms; 0 to 31536000000";
  auto refused = watch.set_clocks({0ms, -1ms}).get();
  BOOST_TEST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::invalid_argument));
  BOOST_TEST(refused.error().message.find(field) != std::string::npos, refused.error().message);
  create_options wanted;
  wanted.environment = at.environment();
  wanted.clocks = {0ms, -1ms};
  auto made = owner.create(wanted).get();
  BOOST_TEST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::invalid_argument));
  BOOST_TEST(made.error().message.find(field) != std::string::npos, made.error().message);
}

BOOST_FIXTURE_TEST_CASE(the_shell_sets_shows_and_extends_clocks_and_says_which_of_them_ended_it,
                        clocks_rig) {
  auto made = cli({"create", "--image", "busybox", "--ttl", "100", "--budget", "50.5", "--idle",
                   "30", "--on-idle", "stop"});
  BOOST_TEST_REQUIRE(made.code == 0, made.err);
  auto id = made.out.substr(0, made.out.find('\n'));
  auto box = value(rt->find(sandbox_id{id}));
  BOOST_TEST((value(box.info()).clocks == sandbox_clocks{100s, 50500ms, 30s, idle_action::stop}));
  BOOST_TEST(cli({"clocks", id, "--ttl", "+20", "--budget", "0"}).code == 0);
  BOOST_TEST((value(box.info()).clocks == sandbox_clocks{120s, 0ms, 30s, idle_action::stop}));
  auto shown = cli({"clocks", id});
  BOOST_TEST(shown.out.find("time to live    120.000 s") != std::string::npos, shown.out);
  BOOST_TEST(shown.out.find("rollout budget  -") != std::string::npos, shown.out);
  auto nothing = cli({"clocks", id, "--budget", "+5"});
  BOOST_TEST(nothing.code == 125);
  BOOST_TEST(nothing.err.find("--budget \"+5\"") != std::string::npos, nothing.err);
  auto wrong = cli({"clocks", id, "--idle=-1"});
  BOOST_TEST(wrong.code == 125);
  BOOST_TEST(wrong.err
             == "dsec: --idle is \"-1\"; 0, or a number from 0.001 to 31536000 of seconds\n");
  BOOST_TEST(cli({"clocks", id, "--idle", "soon"}).code == 125);
  done(box.stop());

  for (auto [option, word] : {std::pair{"--ttl", "expired"}, {"--budget", "budget_spent"}}) {
    auto ran = cli({"run", "--image", "busybox", option, "0.4", "--", "sleep", "600"});
    BOOST_TEST(ran.code == 137);
    BOOST_TEST(ran.err.find(word) != std::string::npos, ran.err);
  }
}

BOOST_FIXTURE_TEST_CASE(a_rollout_budget_stands_while_it_is_paused_and_a_time_to_live_does_not,
                        clocks_rig) {
  auto box = create({60s, 1500ms});
  auto running = box.exec(endless());
  done(box.pause());
  auto before = value(box.stats());
  pass(2s);
  auto after = value(box.stats());
  BOOST_TEST((after.rollout_budget_left == before.rollout_budget_left));
  BOOST_TEST((after.time_to_live_left <= before.time_to_live_left - 2s));
  BOOST_TEST(!running.ready());
  done(box.resume());
  BOOST_TEST((value(running).outcome.kind == outcome_kind::budget_spent));

  auto frozen = create({1s, 60s});
  done(frozen.pause(true));
  BOOST_TEST((log.end_of(frozen).cause == end_cause::time_to_live));
}

BOOST_FIXTURE_TEST_CASE(a_preemption_costs_a_rollout_nothing_of_its_budget, clocks_rig) {
  auto box = create({0ms, 60s});
  BOOST_TEST(value(owner.preempt(preempt_mode::until_resume)).failed == 0u);
  auto before = value(box.stats()).rollout_budget_left;
  auto other = value(rt->open_job("other", {{0ms, 0ms}}));
  auto timer = value(other.create({at.environment(), {}, {}}));
  BOOST_TEST(value(timer.exec(exec_spec{{"sleep", "2"}})).ok());
  BOOST_TEST((value(box.stats()).rollout_budget_left == before));
  done(owner.resume());
  done(other.close());
}

BOOST_AUTO_TEST_SUITE_END()
