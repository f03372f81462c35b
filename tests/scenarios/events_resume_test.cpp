// Whoever reads a job's events goes on where it was, whatever died meanwhile.
#include "state/event_invariants.hpp"
#include "state/store.hpp"
#include "tests/scenarios/events_rig.hpp"
#include "tests/scenarios/sizes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <sstream>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// What a storm has said before it was killed.
struct storm_log {
  std::vector<std::string> events; ///< "SANDBOX KIND STEP", the first has cursor 1.
  std::set<std::pair<std::string, std::uint64_t>> answers;

  void take(const std::string& line) {
    std::istringstream in{line};
    std::string word, box, kind, step;
    in >> word;
    if (word == "answer") {
      std::uint64_t number = 0;
      in >> box >> number;
      answers.emplace(box, number);
      return;
    }
    std::uint64_t cursor = 0;
    in >> cursor >> box >> kind >> step;
    if (step.empty())
      return; // Cut by the kill.
    BOOST_TEST_REQUIRE(cursor == events.size() + 1);
    events.push_back(fmt::format("{} {} {}", box, kind, step));
  }
};

std::string as_said(const job_event& x) {
  return fmt::format("{} {} {}", x.sandbox, x.kind, x.step ? std::to_string(*x.step) : "-");
}

/// Events that the CLI prints, from `cursor`.
struct cli_reader {
  cli_reader(const std::filesystem::path& state, std::uint64_t cursor)
    : child{{machine().programs / "dsec", "--state-dir", state, "events", "train", "--follow",
             "--json", "--from", std::to_string(cursor)}} {}

  /// The cursor of the next one; 0: there is none.
  std::uint64_t next() {
    auto line = child.line();
    return line ? nlohmann::json::parse(*line)["cursor"].get<std::uint64_t>() : 0;
  }

  child_process child;
};

} // namespace

BOOST_AUTO_TEST_SUITE(events_resume, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(a_reader_that_was_cut_off_goes_on_from_its_cursor) {
  auto& at = machine();
  auto state = at.new_state();
  auto rt = at.open(state);
  auto owner = value(rt->open_job("train", no_lease()));
  auto box = value(owner.create({at.environment(), {}, {}}));
  std::uint64_t seen = 0;
  for (int cut = 0; cut < 4; ++cut) {
    cli_reader reader{state, seen + 1};
    // What came while nobody read, then what comes while somebody does.
    for (int i = 0; i < 10; ++i) {
      value(box.exec(exec_spec{{"true"}}));
      BOOST_TEST_REQUIRE(reader.next() == seen + 1);
      ++seen;
    }
    reader.child.kill(SIGKILL);
    for (int i = 0; i < 5; ++i)
      value(box.exec(exec_spec{{"true"}}));
  }
  done(box.stop());
  cli_reader last{state, seen + 1};
  auto all = kept_events(owner);
  BOOST_TEST(in_short(all.back()) == "stopped stopped");
  while (seen < all.size()) {
    BOOST_TEST_REQUIRE(last.next() == seen + 1);
    ++seen;
  }
}

BOOST_AUTO_TEST_CASE(after_kill_9_in_a_storm_of_commands_a_reader_has_no_gap_and_no_repetition) {
  auto& at = machine();
  auto state = at.new_state();
  storm_log before;
  {
    child_process storm{{at.programs / "scenario_storm", state, at.data_dir, at.run_dir,
                         at.layer.str(), std::to_string(at_size(8, 64))}};
    const auto wanted = at_size(1'500, 60'000);
    while (before.events.size() < wanted) {
      auto line = storm.line();
      BOOST_TEST_REQUIRE(line.has_value());
      before.take(*line);
    }
    storm.kill(SIGKILL);
    while (auto line = storm.line())
      before.take(*line);
  }
  BOOST_TEST(before.answers.size() > 100u);

  {
    auto rt = at.open(state);
    auto owner = value(rt->find_job("storm"));
    // The reader goes on behind what it has seen; and what it has seen is still so.
    auto after = kept_events(owner, before.events.size() + 1);
    auto all = kept_events(owner);
    BOOST_TEST_REQUIRE(all.size() == before.events.size() + after.size());
    for (std::size_t i = 0; i < before.events.size(); ++i)
      BOOST_TEST_REQUIRE(as_said(all[i]) == before.events[i]);
    for (const auto& x : violations(all))
      BOOST_ERROR(x);
    std::map<std::pair<std::string, std::uint64_t>, int> ended;
    for (const auto& x : all)
      if (x.kind == event_kind::exec_ended && x.step)
        ++ended[{x.sandbox.str(), *x.step}];
    for (const auto& answer : before.answers)
      BOOST_TEST(ended[answer] == 1, answer.first << " step " << answer.second);

    // Steps that were under way end as well, once their sandboxes do.
    done(owner.close());
    for (const auto& x : violations(kept_events(owner)))
      BOOST_ERROR(x);
  }
  auto durable = open_rocks_store(state / "db");
  BOOST_TEST_REQUIRE(bool{durable});
  auto records = (*durable)->load();
  auto told = (*durable)->events(job_id{"storm"}, 1, events_kept_max);
  BOOST_TEST_REQUIRE((records && told));
  for (const auto& x : disagreements(*records, job_id{"storm"}, told->events))
    BOOST_ERROR(x);
}

BOOST_AUTO_TEST_SUITE_END()
