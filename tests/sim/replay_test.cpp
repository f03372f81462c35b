#define BOOST_TEST_MODULE sim_replay

#include "actors/replay.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <spdlog/spdlog.h>

#include <fstream>

using namespace dsec;

namespace {

scenario preemptions() {
  auto loaded = load_scenario(DSEC_SCENARIOS "/preemptions.yaml");
  BOOST_REQUIRE_MESSAGE(loaded, (loaded ? std::string{} : loaded.error().message));
  return *loaded;
}

struct quiet {
  quiet() {
    spdlog::set_level(spdlog::level::off);
  }
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(quiet);

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_hash_and_one_flipped_message_another) {
  auto plan = preemptions();
  BOOST_TEST(plan.nodes == 8u);
  auto first = replay(plan, {1, 0});
  BOOST_TEST(first.complete);
  BOOST_TEST(first.sandboxes == 2'000u);
  BOOST_TEST(first.finished == 2'000u);
  BOOST_TEST(first.failed == 0u);
  BOOST_TEST(first.duplicated_execs == 0u);
  BOOST_TEST(first.left_behind == 0u);
  BOOST_TEST(first.resent_steps > 0u);
  BOOST_TEST(first.preempted_requests > 0u);
  auto again = replay(plan, {1, 0});
  BOOST_TEST(again.hash == first.hash);
  BOOST_TEST(again.messages == first.messages);
  auto flipped = replay(plan, {1, 1'000});
  BOOST_TEST(flipped.hash != first.hash);
}

BOOST_AUTO_TEST_CASE(another_seed_gives_another_hash) {
  auto plan = preemptions();
  plan.jobs.resize(1);
  plan.jobs[0].sandboxes = 50;
  BOOST_TEST(replay(plan, {1, 0}).hash != replay(plan, {2, 0}).hash);
}

BOOST_AUTO_TEST_CASE(a_scenario_that_is_wrong_names_its_field) {
  auto missing = load_scenario("no-such-file.yaml");
  BOOST_REQUIRE(!missing);
  BOOST_TEST((missing.error().code == errc::not_found));
  temporary_folder folder;
  const auto file = folder.path() / "wrong.yaml";
  for (const std::string time : {".nan", "-1", "1e300", ".inf", "1e7"})
    for (const std::string field : {"at", "think", "act"}) {
      const auto of = [&](const char* name, const char* good) {
        return field == name ? time : std::string{good};
      };
      std::ofstream{file} << "{nodes: 1, capacity: 1, jobs: [{name: a, sandboxes: 1, steps: 1, at: "
                          << of("at", "0") << ", think: [0, " << of("think", "1") << "], act: [0, "
                          << of("act", "1") << "]}]}";
      const auto wrong = load_scenario(file);
      BOOST_TEST_REQUIRE(!wrong, field << " " << time);
      BOOST_TEST((wrong.error().code == errc::invalid_argument));
      BOOST_TEST(wrong.error().message.find(field) != std::string::npos, wrong.error().message);
    }
}
