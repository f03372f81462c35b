#define BOOST_TEST_MODULE init_longest
#include "backends/init/file_open.hpp"
#include "tests/kernel/init/fixture.hpp"

#include <limits>

using namespace dsec;
using namespace dsec::test;

namespace {

/// What a caller may mean by "never", and what overflows beside a clock.
constexpr std::uint64_t long_times[] = {~0ull, 1ull << 63, (1ull << 63) - 1, 10'000'000'000'000};

wire::Hello::Phase phase_of(init_client& client) {
  return client.entered().getHello().getPhase();
}

} // namespace

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_FIXTURE_TEST_SUITE(longest, fixture)

BOOST_AUTO_TEST_CASE(a_deadline_that_no_clock_reaches_does_not_pass) {
  for (auto deadline : long_times) {
    const auto r = client.shell("echo done", {.deadline_ms = deadline});
    BOOST_TEST(r.kind == kind::EXITED);
    BOOST_TEST(r.out == "done\n");
  }
}

BOOST_AUTO_TEST_CASE(a_lease_that_no_clock_reaches_does_not_expire) {
  for (auto in : long_times) {
    auto renew = client.init().renewRequest();
    renew.setPauseInMs(in);
    renew.setStopInMs(in);
    renew.send().wait(client.scope());
    BOOST_TEST((phase_of(client) == wire::Hello::Phase::RUNNING));
    BOOST_TEST(client.shell("true").kind == kind::EXITED);
  }
}

BOOST_AUTO_TEST_CASE(a_time_to_live_that_no_clock_reaches_does_not_pass) {
  for (auto total : long_times) {
    auto clocks = client.init().clocksRequest();
    clocks.setTimeToLiveMs(total);
    clocks.setRolloutBudgetMs(total);
    clocks.send().wait(client.scope());
    BOOST_TEST(client.shell("true").kind == kind::EXITED);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(a_file_from_beyond_all_nanoseconds_has_the_last_time_that_can_be_said) {
  struct stat s {};

  s.st_mtim = {std::numeric_limits<time_t>::max(), 999'999'999};
  BOOST_TEST(init::reading_of(s).modified_ns == std::numeric_limits<std::int64_t>::max());
  s.st_mtim = {std::numeric_limits<time_t>::min(), 0};
  BOOST_TEST(init::reading_of(s).modified_ns == std::numeric_limits<std::int64_t>::min());
  s.st_mtim = {1'600'000'000, 5};
  BOOST_TEST(init::reading_of(s).modified_ns == 1'600'000'000'000'000'005);
}
