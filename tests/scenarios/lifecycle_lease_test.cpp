// A trainer that is gone gives back all it held, and nothing else.
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <set>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::size_t sandboxes = 50;

std::vector<std::string> trainer(const std::filesystem::path& state, const std::string& mode,
                                 std::size_t count, const std::string& pause_ms,
                                 const std::string& stop_ms) {
  auto& at = machine();
  return {at.programs / "scenario_trainer",
          state,
          at.data_dir,
          at.run_dir,
          at.layer.str(),
          mode,
          std::to_string(count),
          pause_ms,
          stop_ms};
}

environment trained() {
  auto from = machine().environment();
  from.limits.memory_bytes = 64 << 20; // As the trainer's.
  return from;
}

/// A batch of the trainer's keys, as a restarted trainer asks for it.
std::vector<create_options> keys(std::size_t count, const std::string& prefix = "k") {
  std::vector<create_options> wanted;
  for (std::size_t i = 0; i < count; ++i) {
    create_options one;
    one.environment = trained();
    one.idempotency_key = fmt::format("{}{}", prefix, i);
    wanted.push_back(std::move(one));
  }
  return wanted;
}

std::unique_ptr<runtime> open_for(const std::filesystem::path& state, std::size_t capacity) {
  auto options = machine().options();
  options.capacity = capacity;
  auto rt = runtime::open(state, options);
  BOOST_TEST_REQUIRE(bool(rt), (rt ? "" : rt.error().message));
  return std::move(*rt);
}

std::set<std::string> lines(child_process& of, std::size_t count) {
  std::set<std::string> all;
  for (std::size_t i = 0; i < count; ++i)
    if (auto line = of.line())
      all.insert(*line);
  return all;
}

/// Waits until dsec-init of each has ended it by itself.
void wait_for_tombstones(const std::set<std::string>& ids) {
  for (const auto& id : ids)
    BOOST_TEST_REQUIRE(bench::wait_for_file(machine().run_dir / (id + ".end"),
                                            bench::within(std::chrono::seconds{60})),
                       id);
}

job open_rollout(runtime& at, std::chrono::milliseconds stop_after = std::chrono::minutes{5}) {
  return value(at.open_job("rollout", {{std::chrono::milliseconds{0}, stop_after}}));
}

} // namespace

BOOST_AUTO_TEST_SUITE(lifecycle_lease, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(a_trainer_restarted_at_once_adopts_all_it_had_and_its_quota_is_right) {
  auto state = machine().new_state();
  std::set<std::string> ids;
  {
    child_process child{trainer(state, "hold", sandboxes, "60000", "120000")};
    ids = lines(child, sandboxes);
    BOOST_TEST_REQUIRE(child.line().value_or("") == "ready");
    child.kill(SIGKILL);
    child.wait();
  }
  // Exactly what it had fits: one that were counted twice, or lost, would be seen.
  auto rt = open_for(state, sandboxes);
  BOOST_TEST(value(rt->list()).size() == sandboxes);
  auto job = open_rollout(*rt);
  auto too_many = job.create({trained(), "one too many"}).get();
  BOOST_TEST_REQUIRE(!too_many);
  BOOST_TEST((too_many.error().code == errc::exhausted), too_many.error().message);
  std::set<std::string> again;
  for (const auto& each : job.create_batch(keys(sandboxes))) {
    auto box = value(each);
    again.insert(box.id().str());
    BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  }
  BOOST_TEST((again == ids));
  BOOST_TEST(value(rt->list()).size() == sandboxes);

  // What it gives back can be had again, and no more than that.
  for (const auto& each : job.create_batch(keys(10)))
    done(value(each).stop());
  auto refilled = job.create_batch(keys(11, "new"));
  std::size_t made = 0;
  for (const auto& each : refilled)
    made += bool(each.get());
  BOOST_TEST(made == 10u);
  done(job.close());
  BOOST_TEST(value(rt->list()).empty());
  BOOST_TEST(residue(installation_of(machine())) == "");
}

BOOST_AUTO_TEST_CASE(the_lease_of_a_killed_trainer_reclaims_all_of_it_and_its_keys_can_start_anew) {
  auto state = machine().new_state();
  std::set<std::string> ids;
  {
    child_process child{trainer(state, "hold", sandboxes, "300", "1500")};
    ids = lines(child, sandboxes);
    BOOST_TEST_REQUIRE(child.line().value_or("") == "ready");
    child.kill(SIGKILL);
    child.wait();
  }
  wait_for_tombstones(ids);
  auto rt = open_for(state, sandboxes);
  auto job = open_rollout(*rt);
  // Ended ones say why, under their keys; none of them holds a place.
  auto gone = job.create(keys(1).front()).get();
  BOOST_TEST_REQUIRE(!gone);
  BOOST_TEST((gone.error().code == errc::invalid_state));
  BOOST_TEST(gone.error().message.find("lease_expired") != std::string::npos, gone.error().message);
  done(job.close());
  BOOST_TEST(value(rt->list()).empty());
  BOOST_TEST(residue(installation_of(machine())) == "");
  job = open_rollout(*rt);
  for (const auto& each : job.create_batch(keys(sandboxes)))
    BOOST_TEST(!ids.contains(value(each).id().str()));
  done(job.close());
  BOOST_TEST(residue(installation_of(machine())) == "");
}

BOOST_AUTO_TEST_CASE(after_a_run_that_succeeded_failed_or_was_cancelled_the_list_is_empty) {
  constexpr std::size_t count = 5;

  struct run {
    const char* mode;
    std::optional<int> signal;
    int code;
  };

  for (auto [mode, signal, code] :
       {run{"succeed", std::nullopt, 0}, run{"fail", std::nullopt, 5},
        run{"hold", SIGINT, 128 + SIGINT}, run{"hold", SIGTERM, 128 + SIGTERM}}) {
    BOOST_TEST_CONTEXT("trainer that is to " << mode << ", ended by "
                                             << (signal ? strsignal(*signal) : "itself")) {
      auto state = machine().new_state();
      child_process child{trainer(state, mode, count, "300", "1000")};
      auto ids = lines(child, count);
      if (signal) {
        BOOST_TEST_REQUIRE(child.line().value_or("") == "ready");
        child.kill(*signal);
      }
      BOOST_TEST(child.wait() == code);
      if (code != 0)
        wait_for_tombstones(ids);
      auto rt = machine().open(state);
      // What ended while nobody looked is found out before the runtime serves.
      done(open_rollout(*rt).close());
      BOOST_TEST(value(rt->list()).empty());
      BOOST_TEST(residue(installation_of(machine())) == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_job_closed_in_the_middle_of_its_creates_and_commands_leaves_nothing) {
  auto rt = machine().open(machine().new_state());
  for (int round = 0; round < 3; ++round) {
    auto job = open_rollout(*rt);
    auto up = value(job.create({trained(), {}}));
    auto running = up.exec(exec_spec{{"sleep", "600"}});
    auto made = job.create_batch(keys(16));
    if (round == 1)
      value(made.front());
    if (round == 2)
      for (const auto& each : made)
        value(each);
    done(job.close());
    BOOST_TEST((value(running).outcome.kind == outcome_kind::sandbox_stopped));
    for (const auto& each : made)
      if (auto x = each.get(); !x)
        BOOST_TEST((x.error().code == errc::invalid_state), x.error().message);
    BOOST_TEST(value(rt->list()).empty());
    BOOST_TEST(residue(installation_of(machine())) == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
