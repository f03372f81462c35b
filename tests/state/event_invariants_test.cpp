#include "state/event_invariants.hpp"
#include "tests/state/records.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace dsec;
using K = event_kind;

namespace {

/// A story of one sandbox, told event by event.
struct story {
  story& tell(K kind, end_cause cause = end_cause::none) {
    auto& x = events.emplace_back();
    x.job = job_id{"train"};
    x.cursor = events.size();
    x.sandbox = sandbox_number(1);
    x.kind = kind;
    x.cause = cause;
    return *this;
  }

  story& exec(K kind, std::uint64_t step, std::optional<outcome_kind> how = {}) {
    tell(kind);
    events.back().exec = step;
    events.back().step = step;
    if (how)
      events.back().outcome = outcome{*how};
    return *this;
  }

  bool holds() const {
    return violations(events).empty();
  }

  std::vector<job_event> events;
};

story running() {
  return story{}.tell(K::created).tell(K::running);
}

} // namespace

BOOST_AUTO_TEST_SUITE(event_invariants)

BOOST_AUTO_TEST_CASE(a_whole_life_holds) {
  auto x = running()
             .exec(K::exec_started, 1)
             .exec(K::exec_ended, 1, outcome_kind::exited)
             .tell(K::paused)
             .tell(K::reclaimed)
             .tell(K::resumed)
             .tell(K::failed, end_cause::infrastructure)
             .tell(K::stopped, end_cause::infrastructure);
  BOOST_TEST(x.holds());
}

BOOST_AUTO_TEST_CASE(what_is_told_twice_or_out_of_order_is_found) {
  BOOST_TEST(!story{}.tell(K::running).holds());
  BOOST_TEST(!running().tell(K::running).holds());
  BOOST_TEST(!running().tell(K::resumed).holds());
  BOOST_TEST(!running().tell(K::paused).tell(K::paused).holds());
  BOOST_TEST(!running().tell(K::stopped, end_cause::stopped).tell(K::paused).holds());
  BOOST_TEST(!running().tell(K::stopped).holds());
  BOOST_TEST(!running().exec(K::exec_started, 1).exec(K::exec_started, 1).holds());
  BOOST_TEST(!running().exec(K::exec_ended, 1, outcome_kind::exited).holds());
  auto twice = running();
  for (int i = 0; i < 2; ++i)
    twice.exec(K::exec_started, 1).exec(K::exec_ended, 1, outcome_kind::exited);
  BOOST_TEST(!twice.holds());
}

BOOST_AUTO_TEST_CASE(a_step_that_was_refused_may_be_started_again) {
  auto x = running().exec(K::exec_started, 1).exec(K::exec_ended, 1);
  BOOST_TEST(!x.holds()); // Nothing says why.
  x.events.back().detail = "no such program";
  BOOST_TEST(x.holds());
  BOOST_TEST(x.exec(K::exec_started, 1).exec(K::exec_ended, 1, outcome_kind::exited).holds());
}

BOOST_AUTO_TEST_CASE(a_gap_between_events_is_found_also_in_the_middle_of_a_story) {
  auto x = running().tell(K::paused).tell(K::resumed);
  x.events.erase(x.events.begin());
  BOOST_TEST(x.holds());
  x.events.erase(x.events.begin() + 1);
  BOOST_TEST(!x.holds());
}

BOOST_AUTO_TEST_CASE(records_that_say_something_else_are_found) {
  auto x = running()
             .exec(K::exec_started, 1)
             .exec(K::exec_ended, 1, outcome_kind::exited)
             .exec(K::exec_started, 2);
  loaded_state state;
  auto& record = state.sandboxes.emplace_back();
  record.id = sandbox_number(1);
  record.job = job_id{"train"};
  record.told = K::running;
  step_record ended{record.id, 1, 1, {}, exec_result{}}, begun{record.id, 2, 2, {}, {}};
  ended.result->outcome.kind = outcome_kind::exited;
  state.steps = {ended, begun};
  auto agree = [&] {
    return disagreements(state, job_id{"train"}, x.events).empty();
  };
  BOOST_TEST(agree());
  state.sandboxes[0].told = K::paused;
  BOOST_TEST(!agree());
  state.sandboxes[0].told = K::running;
  state.sandboxes[0].processes = {7};
  BOOST_TEST(!agree());
  state.sandboxes[0].processes.clear();
  state.steps[0].result->outcome.code = 1;
  BOOST_TEST(!agree());
  state.steps[0] = ended;
  state.steps[1].result = ended.result;
  BOOST_TEST(!agree());
  state.steps[1] = begun;
  state.steps.push_back({record.id, 3, 3, {}, {}});
  BOOST_TEST(!agree());
  state.steps.pop_back();
  state.sandboxes.emplace_back(record).id = sandbox_number(2);
  BOOST_TEST(!agree());
}

BOOST_AUTO_TEST_SUITE_END()
