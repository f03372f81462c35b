#include "state/format.hpp"
#include "state/sandbox_lifecycle.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <vector>

using namespace dsec;

namespace {

constexpr int state_count = static_cast<int>(sandbox_state::lost) + 1;
constexpr int event_count = static_cast<int>(sandbox_event::found_reclaimed) + 1;

sandbox_state after(sandbox_state from, std::vector<sandbox_event> events) {
  for (auto x : events) {
    auto to = next(from, x);
    BOOST_TEST_REQUIRE(to.has_value(), fmt::format("{} on {}", from, x));
    from = *to;
  }
  return from;
}

} // namespace

BOOST_AUTO_TEST_SUITE(lifecycle)

BOOST_AUTO_TEST_CASE(the_usual_life_is_legal) {
  using E = sandbox_event;
  auto end =
    after(sandbox_state::pending, {E::start, E::started, E::pause, E::paused, E::reclaim,
                                   E::reclaimed, E::resume, E::resumed, E::stop, E::stopped});
  BOOST_TEST((end == sandbox_state::terminated));
}

BOOST_AUTO_TEST_CASE(stop_wins_from_everywhere) {
  for (int i = 0; i < state_count; ++i) {
    auto from = static_cast<sandbox_state>(i);
    if (from == sandbox_state::stopping || from == sandbox_state::terminated)
      continue;
    BOOST_TEST((next(from, sandbox_event::stop) == sandbox_state::stopping), fmt::to_string(from));
  }
}

BOOST_AUTO_TEST_CASE(nothing_leaves_terminated) {
  for (int i = 0; i < event_count; ++i)
    BOOST_TEST(!next(sandbox_state::terminated, static_cast<sandbox_event>(i)).has_value());
}

BOOST_AUTO_TEST_CASE(recovery_may_find_a_living_sandbox_in_any_of_its_three_phases) {
  for (auto from : {sandbox_state::running, sandbox_state::pausing, sandbox_state::paused,
                    sandbox_state::reclaiming, sandbox_state::reclaimed, sandbox_state::resuming}) {
    BOOST_TEST_CONTEXT(to_string(from)) {
      BOOST_TEST((next(from, sandbox_event::found_running) == sandbox_state::running));
      BOOST_TEST((next(from, sandbox_event::found_paused) == sandbox_state::paused));
      BOOST_TEST((next(from, sandbox_event::found_reclaimed) == sandbox_state::reclaimed));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_state_and_event_has_a_name_of_its_own) {
  std::set<std::string_view> states, events;
  for (int i = 0; i < state_count; ++i)
    states.insert(to_string(static_cast<sandbox_state>(i)));
  for (int i = 0; i < event_count; ++i)
    events.insert(to_string(static_cast<sandbox_event>(i)));
  BOOST_TEST(states.size() == static_cast<std::size_t>(state_count));
  BOOST_TEST(events.size() == static_cast<std::size_t>(event_count));
  BOOST_TEST(!states.contains("unknown"));
  BOOST_TEST(!events.contains("unknown"));
}

BOOST_AUTO_TEST_SUITE_END()
