#include "bench/demo/grade.hpp"
#include "bench/demo/task.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace dsec::demo;

namespace {

task_set shipped() {
  auto set = load_tasks(DSEC_DEMO_TASKS);
  BOOST_REQUIRE_MESSAGE(bool(set), (set ? "" : set.error().message));
  return *set;
}

} // namespace

BOOST_AUTO_TEST_SUITE(demo_tasks)

BOOST_AUTO_TEST_CASE(there_are_six_tasks_over_four_source_packages_at_least) {
  auto set = shipped();
  std::set<std::string> sources;
  for (const auto& x : set.tasks)
    sources.insert(x.source);
  BOOST_TEST(set.tasks.size() >= 6u);
  BOOST_TEST(sources.size() >= 4u);
}

BOOST_AUTO_TEST_CASE(the_trajectories_solve_fail_and_misbehave_in_every_way) {
  std::set<std::string> expected;
  for (const auto& x : shipped().tasks)
    for (const auto& t : x.trajectories)
      expected.insert(t.expect);
  for (const char* outcome :
       {"solved", "failed", "timed_out", "oom_killed", "disk_full", "pids_limit", "signalled"})
    BOOST_TEST(expected.contains(outcome), outcome);
}

BOOST_AUTO_TEST_CASE(a_grader_collects_sources_and_never_tests) {
  for (const auto& x : shipped().tasks)
    for (const auto& path : x.collect)
      BOOST_TEST(path.find("test") == std::string::npos, x.name << " collects " << path);
}

BOOST_AUTO_TEST_CASE(a_folder_without_tasks_is_named_in_the_error) {
  auto set = load_tasks("/nonexistent");
  BOOST_REQUIRE(!set);
  BOOST_TEST(set.error().message.find("/nonexistent") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(demo_grade)

BOOST_AUTO_TEST_CASE(the_last_score_line_counts) {
  BOOST_TEST((parse_score("1 passed, 9 failed\nnoise\n64 passed, 0 failed\n") == score{64, 0}));
}

BOOST_AUTO_TEST_CASE(a_score_inside_a_longer_line_is_not_one) {
  BOOST_TEST(!parse_score("echo 64 passed, 0 failed\n").has_value());
}

BOOST_AUTO_TEST_CASE(no_score_fewer_tests_or_a_failure_earn_nothing) {
  task x;
  x.grade_tests = 64;
  BOOST_TEST(reward_of(x, std::nullopt) == 0.0);
  BOOST_TEST(reward_of(x, score{63, 0}) == 0.0);
  BOOST_TEST(reward_of(x, score{64, 1}) == 0.0);
  BOOST_TEST(reward_of(x, score{64, 0}) == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
