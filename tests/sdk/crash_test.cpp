#include "bench/waits.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <iterator>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

std::vector<std::string> trainer(const std::filesystem::path& state, const char* mode) {
  auto& at = machine();
  return {at.programs / "sdk_trainer", state, at.data_dir, at.run_dir, at.layer.str(), mode};
}

exec_spec step(std::uint64_t number, std::string script) {
  auto spec = exec_spec::shell(std::move(script));
  spec.step = number;
  return spec;
}

/// What is said of a sandbox of that job once it has ended, within 20 s.
sandbox_info end_of(const job& owner, const sandbox& box) {
  std::promise<void> ended;
  auto reading = owner.follow(1, [&](const job_event& x) {
    if (x.sandbox == box.id() && x.kind == event_kind::stopped)
      ended.set_value();
  });
  BOOST_TEST((ended.get_future().wait_for(std::chrono::seconds{20}) == std::future_status::ready));
  return value(box.info());
}

} // namespace

BOOST_AUTO_TEST_SUITE(crash, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(after_kill_9_recorded_steps_are_replayed_and_the_one_in_flight_is_joined) {
  auto& at = machine();
  auto state = at.new_state();
  std::string id;
  {
    child_process child{trainer(state, "steps")};
    id = child.line().value_or("");
    BOOST_TEST_REQUIRE(!id.empty());
    for (int i = 1; i <= 3; ++i)
      BOOST_TEST(child.line().value_or("") == fmt::format("step {} 0", i));
    BOOST_TEST_REQUIRE(child.line().value_or("") == "in flight");
    child.kill(SIGKILL);
    BOOST_TEST(child.wait() == 128 + SIGKILL);
  }
  auto rt = at.open(state);
  auto box = value(rt->find(sandbox_id{id}));
  BOOST_TEST(value(box.info()).steps == 3u);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    auto x = value(box.exec(step(i, fmt::format("echo {} >> /room/log; echo out{}", i, i))));
    BOOST_TEST(x.replayed);
    BOOST_TEST(x.out == fmt::format("out{}\n", i));
  }
  auto joined =
    box.exec(step(4, "echo 4 >> /room/log; echo > /room/begun; read word < /room/go; echo landed"));
  BOOST_TEST(value(box.exec(exec_spec::shell("echo > /room/go"))).ok());
  BOOST_TEST(value(joined).out == "landed\n");
  // The sandbox's own file is the judge: every step ran once.
  BOOST_TEST(value(box.read("/room/log")) == "1\n2\n3\n4\n");
}

BOOST_AUTO_TEST_CASE(a_trainer_killed_at_any_point_of_a_creation_gets_its_one_sandbox) {
  auto& at = machine();
  for (int n = 1;; ++n) {
    auto state = at.new_state();
    auto marker = at.root / fmt::format("marker{}", n);
    child_process child{trainer(state, "create"),
                        {fmt::format("DSEC_KILL_AT=node:{}:{}", n, marker.string())}};
    auto code = child.wait();
    BOOST_TEST_CONTEXT("kill point " << n) {
      BOOST_TEST((code == 0 || code == 128 + SIGKILL), code);
      auto rt = at.open(state);
      auto job = value(rt->open_job("rollout"));
      create_options again; // As the trainer asked.
      again.environment.layers = {at.layer};
      again.idempotency_key = "first";
      auto box = value(job.create(again));
      BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
      BOOST_TEST(value(rt->list(true)).size() == 1u);
      BOOST_TEST(bool(job.close().get()));
    }
    if (code == 0)
      break;
    BOOST_TEST_REQUIRE(n < 100);
  }
}

BOOST_AUTO_TEST_CASE(the_lease_of_a_killed_trainer_ends_its_sandbox_without_anybody) {
  auto& at = machine();
  auto state = at.new_state();
  std::string id;
  {
    child_process child{trainer(state, "lease")};
    id = child.line().value_or("");
    BOOST_TEST_REQUIRE(!id.empty());
    child.kill(SIGKILL);
    child.wait();
  }
  auto tombstone = at.run_dir / (id + ".end");
  BOOST_TEST_REQUIRE(bench::wait_for_file(tombstone, bench::within(std::chrono::seconds{30})));
  auto rt = at.open(state);
  auto box = value(rt->find(sandbox_id{id}));
  BOOST_TEST(to_string(end_of(value(rt->find_job("rollout")), box).cause) == "lease_expired");
}

BOOST_AUTO_TEST_CASE(a_killed_dsec_init_fails_its_sandbox_as_infrastructure_and_no_other) {
  auto& at = machine();
  auto rt = at.open(at.new_state());
  auto victim = playground::one_sandbox(*rt, at.environment());
  auto other = playground::one_sandbox(*rt, at.environment());
  auto flying = victim.exec(exec_spec{{"sleep", "600"}});
  std::string words;
  {
    std::ifstream lock{at.run_dir / (victim.id().str() + ".lock")};
    words.assign(std::istreambuf_iterator<char>{lock}, {});
  }
  auto at_pid = words.find("pid");
  BOOST_TEST_REQUIRE(at_pid != std::string::npos, words);
  auto digits = words.find_first_of("0123456789", at_pid);
  ::kill(std::stoi(words.substr(digits)), SIGKILL);
  auto x = flying.get();
  if (x)
    BOOST_TEST((x->outcome.kind == outcome_kind::infrastructure));
  else
    BOOST_TEST((x.error().code == errc::unavailable || x.error().code == errc::invalid_state),
               x.error().message);
  BOOST_TEST(value(other.exec(exec_spec{{"true"}})).ok());
  BOOST_TEST(to_string(end_of(value(rt->find_job("test")), victim).cause) == "infrastructure");
}

BOOST_AUTO_TEST_SUITE_END()
