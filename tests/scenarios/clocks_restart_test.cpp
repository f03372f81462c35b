// Clocks hold over every restart of ours, and while nobody of ours is there.
#include "tests/scenarios/clocks_rig.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

std::filesystem::path tombstone(const std::string& id) {
  return machine().run_dir / (id + ".end");
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void kill_spawner() {
  auto pid = demo::spawner_pid(installation_of(machine()));
  BOOST_TEST_REQUIRE(pid > 0);
  ::kill(pid, SIGKILL);
  BOOST_TEST_REQUIRE(bench::wait_for_end(pid, bench::within(10s)));
}

/// Asks until the list has none that lives; what is left then.
std::vector<sandbox_info> outlive_all(served_node& node, std::chrono::milliseconds patience) {
  std::vector<sandbox_info> left;
  bench::ask_until(bench::within(patience), 50ms, [&] {
    left = node.list(false);
    return left.empty();
  });
  return left;
}

std::string required(const result<std::string>& x) {
  BOOST_TEST_REQUIRE(bool(x), (x ? "" : x.error().message));
  return *x;
}

} // namespace

BOOST_AUTO_TEST_SUITE(clocks_restart, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(clocks_are_kept_while_no_process_of_the_node_lives) {
  served_node node;
  auto mortal = required(node.create({2s}));
  auto short_run = required(node.create({0ms, 2s}));
  auto frozen = required(node.create({2s, 2s}));
  BOOST_TEST(node.cli({"pause", frozen}).code == 0);
  node.kill();
  // Nobody is left but its own supervisor: the leader is gone, and the spawner with it.
  kill_spawner();
  for (const auto& [id, word] : {std::pair{mortal, "time_to_live\n"},
                                 {short_run, "rollout_budget\n"},
                                 {frozen, "time_to_live\n"}}) {
    BOOST_TEST_REQUIRE(bench::wait_for_file(tombstone(id), bench::within(20s)), id);
    BOOST_TEST(content(tombstone(id)).starts_with(word), content(tombstone(id)));
  }
  BOOST_TEST_REQUIRE(node.start());
  BOOST_TEST(outlive_all(node, 10s).empty());
  auto all = nlohmann::json::parse(node.cli({"ps", "--all", "--json"}).out);
  std::map<std::string, std::string> causes;
  for (const auto& one : all)
    causes[one["id"]] = one["cause"];
  BOOST_TEST(causes[mortal] == "time_to_live");
  BOOST_TEST(causes[short_run] == "rollout_budget");
  BOOST_TEST(causes[frozen] == "time_to_live");
  BOOST_TEST(residue(installation_of(machine())) == "");
}

BOOST_AUTO_TEST_CASE(clocks_and_their_extensions_outlive_a_killed_node_and_a_killed_spawner) {
  served_node node;
  sandbox_clocks first{60s, 50s, 40s, idle_action::stop};
  auto id = required(node.create(first));
  auto extended = first;
  extended.time_to_live = 600s;
  BOOST_TEST(node.cli({"clocks", id, "--ttl", "+540"}).code == 0);
  node.kill();
  kill_spawner();
  BOOST_TEST_REQUIRE(node.start());
  BOOST_TEST((node.info(id).clocks == extended));
  auto shown = nlohmann::json::parse(node.cli({"clocks", id, "--json"}).out);
  BOOST_TEST(shown["time_to_live_ms"] == 600'000);
  auto left = shown["time_to_live_left_ms"].get<std::int64_t>();
  BOOST_TEST((left < 600'000 && left > 540'000), left);
  auto budget = shown["rollout_budget_left_ms"].get<std::int64_t>();
  BOOST_TEST((budget < 50'000 && budget > 1'000), budget);
  BOOST_TEST(shown["on_idle"] == "stop");
}

/// The record comes first, then its supervisor hears of it: whatever is between them, what the
/// record says is what happens.
BOOST_AUTO_TEST_CASE(a_node_killed_at_any_point_of_an_extension_does_what_its_record_says) {
  int before = 0, after = 0;
  for (int n = 1;; ++n) {
    BOOST_TEST_REQUIRE(n < 100);
    served_node node;
    auto id = required(node.create({3s}));
    node.kill();
    auto marker = machine().root / fmt::format("clocks{}", n);
    bool up = node.start({fmt::format("DSEC_KILL_AT=node:{}:{}", n, marker.string())});
    auto set = up ? node.set_clocks(id, {1h}) : result<void>{error{errc::unavailable, "not up"}};
    node.kill();
    BOOST_TEST_REQUIRE(node.start());
    auto info = node.info(id);
    BOOST_TEST_CONTEXT("kill point " << n << ", answered: " << bool(set)) {
      bool extended = info.clocks.time_to_live == 1h;
      BOOST_TEST((extended || !set)); // What was acknowledged stays.
      if (!extended) {
        ++before;
        continue;
      }
      ++after;
      // Its old time has passed when another one of that age has gone.
      auto other = required(node.create({3s}));
      BOOST_TEST_REQUIRE(bench::wait_for_file(tombstone(other), bench::within(20s)));
      BOOST_TEST((node.info(id).state == sandbox_state::running));
      BOOST_TEST(!std::filesystem::exists(tombstone(id)));
    }
    if (set)
      break;
  }
  BOOST_TEST(before > 0);
  BOOST_TEST(after > 0);
}

BOOST_AUTO_TEST_CASE(every_sandbox_with_a_time_to_live_ends_in_time_whatever_is_done_to_it) {
  const std::size_t count = at_size(20, 60);
  served_node node;
  std::mt19937 chance{6};
  auto below = [&](int n) {
    return static_cast<int>(chance() % static_cast<unsigned>(n));
  };
  using steady = std::chrono::steady_clock;

  struct life {
    steady::time_point born;
    std::chrono::milliseconds longest; ///< Of what was ever asked for it.
  };

  std::map<std::string, life> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::chrono::milliseconds ttl{1000 + below(3000)};
    auto born = steady::now();
    all[required(node.create({ttl}))] = {born, ttl};
  }
  auto last = [&] {
    steady::time_point latest{};
    for (const auto& [id, x] : all)
      latest = std::max(latest, x.born + x.longest);
    return latest;
  };
  for (int round = 0; round < 40 && steady::now() < last(); ++round) {
    for (int i = 0; i < 6; ++i) {
      auto& [id, x] = *std::next(all.begin(), below(static_cast<int>(count)));
      switch (below(4)) {
      case 0:
      case 1: {
        std::chrono::milliseconds ttl{500 + below(5000)};
        if (node.set_clocks(id, {ttl}))
          x.longest = std::max(x.longest, ttl);
        break;
      }
      case 2: {
        auto pause = node.find(id).pauseRequest();
        pause.setReclaim(below(2) == 0);
        (void)wait(node.at(), pause.send());
        break;
      }
      default:
        if (below(4) == 0)
          (void)wait(node.at(), node.find(id).stopRequest().send());
        else
          (void)wait(node.at(), node.find(id).resumeRequest().send());
        break;
      }
    }
    if (below(8) == 0) {
      node.kill();
      BOOST_TEST_REQUIRE(node.start());
    }
  }
  auto patience = std::max(steady::duration{0}, last() - steady::now()) + 5s;
  auto left = outlive_all(node, std::chrono::duration_cast<std::chrono::milliseconds>(patience));
  for (const auto& x : left)
    BOOST_TEST(false, x.id.str() << " is still " << to_string(x.state));
  std::size_t expired = 0;
  for (const auto& x : node.list(true)) {
    BOOST_TEST((x.state == sandbox_state::terminated));
    BOOST_TEST((x.cause == end_cause::time_to_live || x.cause == end_cause::stopped),
               x.id.str() << ": " << to_string(x.cause) << ", " << x.detail);
    expired += x.cause == end_cause::time_to_live;
  }
  BOOST_TEST(expired > count / 3);
  BOOST_TEST(residue(installation_of(machine())) == "");
}

BOOST_AUTO_TEST_SUITE_END()
