#include "state/invariants.hpp"
#include "tests/state/records.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>

using namespace dsec;

namespace {

loaded_state sound() {
  loaded_state x;
  x.meta = {node_id{"n00000001"}, "boot", 1, 3};
  x.jobs.push_back({job_id{"j"}, job_state::active, {}, {}, 2, 1});
  for (std::uint64_t i : {1, 2}) {
    auto& y = x.sandboxes.emplace_back();
    y.id = sandbox_number(i);
    y.job = job_id{"j"};
    y.index = i - 1;
    y.idempotency_key = "key" + std::to_string(i);
    y.is = sandbox_state::running;
  }
  x.steps.push_back({sandbox_number(1), 4, 4, std::string(64, 'a'), std::nullopt});
  return x;
}

/// Breaks a sound state and expects that one sentence says `part`.
void expect(std::string_view part, const std::function<void(loaded_state&)>& harm) {
  auto x = sound();
  harm(x);
  bool said = false;
  for (const auto& y : violations(x))
    said |= y.find(part) != std::string::npos;
  BOOST_TEST(said, part);
}

} // namespace

BOOST_AUTO_TEST_SUITE(invariants)

BOOST_AUTO_TEST_CASE(a_sound_state_and_an_empty_one_have_no_violations) {
  BOOST_TEST(violations(sound()).empty());
  BOOST_TEST(violations({}).empty());
}

BOOST_AUTO_TEST_CASE(an_ended_sandbox_outlives_its_job) {
  auto x = sound();
  x.jobs.clear();
  for (auto& y : x.sandboxes) {
    y.is = y.wanted = sandbox_state::terminated;
    y.cause = end_cause::stopped;
    y.ended_ms = 5;
  }
  BOOST_TEST(violations(x).empty());
}

BOOST_AUTO_TEST_CASE(each_harm_is_told) {
  expect("the node id", [](auto& x) { x.meta.node = node_id{"n1"}; });
  expect("job j: recorded twice", [](auto& x) { x.jobs.push_back(x.jobs[0]); });
  expect("the name is malformed", [](auto& x) { x.jobs[0].id = job_id{"a b"}; });
  expect("n00000001-1: recorded twice", [](auto& x) { x.sandboxes[1].id = x.sandboxes[0].id; });
  expect("the id is malformed", [](auto& x) { x.sandboxes[0].id = sandbox_id{"s"}; });
  expect("not born on", [](auto& x) { x.meta.node = node_id{"n00000002"}; });
  expect("not below the next one", [](auto& x) { x.meta.next_sequence = 2; });
  expect("idempotency key", [](auto& x) { x.sandboxes[1].idempotency_key = "key1"; });
  expect("failed without a cause", [](auto& x) { x.sandboxes[0].is = sandbox_state::failed; });
  expect("terminated without a time", [](auto& x) {
    x.sandboxes[0].is = x.sandboxes[0].wanted = sandbox_state::terminated;
    x.sandboxes[0].cause = end_cause::stopped;
  });
  expect("running but ended", [](auto& x) { x.sandboxes[0].ended_ms = 1; });
  expect("nothing to head for", [](auto& x) { x.sandboxes[0].wanted = sandbox_state::pausing; });
  expect("stopping but wanted running",
         [](auto& x) { x.sandboxes[0].is = sandbox_state::stopping; });
  expect("which does not exist", [](auto& x) { x.jobs.clear(); });
  expect("its index 1 in job j is not below 1", [](auto& x) { x.jobs[0].next_index = 1; });
  expect("it is number 0 of job j", [](auto& x) { x.sandboxes[1].index = 0; });
  expect("step 4 of n00000001-1: recorded twice", [](auto& x) { x.steps.push_back(x.steps[0]); });
  expect("its sandbox does not exist", [](auto& x) { x.steps[0].sandbox = sandbox_number(9); });
  expect("its exec id is 5", [](auto& x) { x.steps[0].exec = 5; });
  expect("request digest", [](auto& x) { x.steps[0].request_digest = ""; });
  expect("says that it was replayed", [](auto& x) { x.steps[0].result.emplace().replayed = true; });
  expect("recorded as expired, and its sandbox is stopping (stopped)", [](auto& x) {
    x.sandboxes[0].is = sandbox_state::stopping;
    x.sandboxes[0].wanted = sandbox_state::terminated;
    x.sandboxes[0].cause = end_cause::stopped;
    x.steps[0].result.emplace().outcome.kind = outcome_kind::expired;
  });
  expect("recorded as sandbox_stopped, and its sandbox is running (none)",
         [](auto& x) { x.steps[0].result.emplace().outcome.kind = outcome_kind::sandbox_stopped; });
  expect("recorded as node_lost",
         [](auto& x) { x.steps[0].result.emplace().outcome.kind = outcome_kind::node_lost; });
  expect("before it pauses", [](auto& x) {
    x.jobs[0].lease = {std::chrono::milliseconds{10}, std::chrono::milliseconds{5}};
  });
}

BOOST_AUTO_TEST_SUITE_END()
