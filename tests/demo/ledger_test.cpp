#define BOOST_TEST_MODULE demo
#include "bench/demo/ledger.hpp"
#include "bench/demo/report.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <stdlib.h>

using namespace dsec::demo;
using json = nlohmann::json;

namespace {

json acked(const char* sandbox, int step, const char* answer = "exited 0 0") {
  return {{"event", "acked"}, {"sandbox", sandbox}, {"step", step}, {"answer", answer}};
}

json seen(const char* sandbox, std::vector<int> steps) {
  return {{"event", "seen"}, {"sandbox", sandbox}, {"steps", steps}};
}

struct folder {
  std::filesystem::path path;

  folder() {
    char name[] = "/tmp/dsec-ledger-XXXXXX";
    path = ::mkdtemp(name);
  }

  ~folder() {
    std::filesystem::remove_all(path);
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(ledger_verdicts)

BOOST_AUTO_TEST_CASE(every_step_written_once_by_itself_is_fine) {
  auto v = judge({acked("a", 1), acked("a", 2), seen("a", {1, 2})});
  BOOST_TEST(v.checked == 2u);
  BOOST_TEST(v.lost.empty());
  BOOST_TEST(v.duplicated.empty());
  BOOST_TEST(v.changed.empty());
}

BOOST_AUTO_TEST_CASE(an_acknowledged_step_that_left_no_line_is_lost) {
  auto v = judge({acked("a", 1), acked("a", 2), seen("a", {1})});
  BOOST_TEST(v.lost.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_step_that_wrote_two_lines_is_duplicated_even_if_never_acknowledged) {
  auto v = judge({acked("a", 1), seen("a", {1, 2, 2})});
  BOOST_TEST(v.duplicated.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_command_that_could_not_start_may_leave_no_line) {
  auto v = judge({acked("a", 1), acked("a", 2, "pids_limit 0 0"), seen("a", {1})});
  BOOST_TEST(v.lost.empty());
}

BOOST_AUTO_TEST_CASE(another_answer_after_a_restart_is_a_change) {
  auto v = judge({acked("a", 1, "exited 0 aa"), acked("a", 1, "exited 0 bb"), seen("a", {1})});
  BOOST_TEST(v.changed.size() == 1u);
}

BOOST_AUTO_TEST_CASE(steps_of_a_sandbox_that_is_gone_are_told_apart) {
  auto v = judge({acked("a", 1)});
  BOOST_TEST(v.unreadable == 1u);
  BOOST_TEST(v.lost.empty());
}

BOOST_AUTO_TEST_CASE(results_count_what_differs_from_the_expected_outcome) {
  json rollout = {{"event", "rollout"}, {"sandbox", "a"},      {"task", "t"},  {"trajectory", "x"},
                  {"expect", "solved"}, {"outcome", "failed"}, {"reward", 0.0}};
  BOOST_TEST(results({rollout})["unexpected"] == 1);
  // A later run of the same rollout counts in place of the earlier one.
  auto again = rollout;
  again["outcome"] = "solved";
  BOOST_TEST(results({rollout, again})["unexpected"] == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ledger_file)

BOOST_AUTO_TEST_CASE(a_line_that_a_crash_cut_off_is_dropped_and_the_rest_kept) {
  folder where;
  auto file = where.path / "ledger";
  std::ofstream{file} << acked("a", 1).dump() << "\n{\"event\": \"ack";
  {
    auto notes = ledger::open(file);
    BOOST_REQUIRE(bool(notes));
    notes->append(acked("a", 2));
  }
  auto sums = add_up(read_ledger(file));
  BOOST_TEST(sums.acked.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
