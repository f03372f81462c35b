// What nobody uses gives its memory back, or ends; what is silent and busy is in use.
#include "tests/scenarios/clocks_rig.hpp"

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

sandbox_clocks idle(std::chrono::milliseconds after, idle_action then) {
  return {0ms, 0ms, after, then};
}

} // namespace

BOOST_AUTO_TEST_SUITE(clocks_idle, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_silent_busy_command_longer_than_the_idle_time_out_is_not_idle,
                        clocks_rig) {
  auto limit = full_size() ? 5s : 1s;
  auto box = create(idle(limit, idle_action::stop));
  // It neither writes nor sleeps, and is left alone for several times the limit.
  auto busy = box.exec(exec_spec::shell("while [ ! -e /tmp/end ]; do :; done; echo done"));
  pass(3 * limit);
  BOOST_TEST(!busy.ready());
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
  // Freezing would show in the time that its processes have got.
  auto used = value(box.stats()).cpu;
  BOOST_TEST((used > limit), used.count());
  done(box.write("/tmp/end", ""));
  BOOST_TEST(value(busy).out == "done\n");
  BOOST_TEST((log.end_of(box).cause == end_cause::idle));
}

BOOST_FIXTURE_TEST_CASE(an_idle_sandbox_is_reclaimed_and_comes_back_by_use_cycle_after_cycle,
                        clocks_rig) {
  const auto policy = idle(500ms, idle_action::reclaim);
  auto box = create(policy);
  done(box.write("/tmp/count", "0"));
  for (std::size_t cycle = 1; cycle <= at_size(3, 10); ++cycle) {
    BOOST_TEST_REQUIRE(log.wait_for(event_kind::reclaimed, box, cycle));
    auto x = value(
      box.exec(exec_spec::shell("n=$(($(cat /tmp/count) + 1)); echo $n > /tmp/count; echo $n")));
    BOOST_TEST(x.out == fmt::format("{}\n", cycle));
    // The policy is as it was, and it was not ended by it.
    auto info = value(box.info());
    BOOST_TEST((info.clocks == policy));
    BOOST_TEST((info.cause == end_cause::none));
  }
}

BOOST_FIXTURE_TEST_CASE(somebody_elses_pause_is_not_idleness, clocks_rig) {
  auto box = create(idle(800ms, idle_action::stop));
  done(box.pause());
  pass(2s);
  BOOST_TEST((value(box.info()).state == sandbox_state::paused));
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  BOOST_TEST((log.end_of(box).cause == end_cause::idle));
}

BOOST_FIXTURE_TEST_CASE(use_after_use_keeps_it_alive_for_longer_than_its_idle_time_out,
                        clocks_rig) {
  auto box = create(idle(1s, idle_action::stop));
  for (int i = 0; i < 8; ++i) {
    pass(300ms);
    if (i % 2 == 0)
      BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
    else
      done(box.write("/tmp/used", "x"));
  }
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
}

BOOST_AUTO_TEST_SUITE_END()
