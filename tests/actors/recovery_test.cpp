#define BOOST_TEST_MODULE actors_recovery

#include "actors/wiring.hpp"
#include "sdk/embed/core.hpp"
#include "state/exec.hpp"
#include "state/forwarding_store.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/actor_registry.hpp>

#include <chrono>
#include <malloc.h>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t ended = 2'000;
constexpr std::uint64_t steps_each = 20;
/// Of what a node keeps of a sandbox that has ended: its record, and where to find it.
constexpr std::size_t bytes_each_max = 2'500;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool counts_memory = false;
#else
constexpr bool counts_memory = true;
#endif

/// Notes how many steps were loaded at once.
class counting_store final : public forwarding_store {
public:
  using forwarding_store::forwarding_store;

  result<loaded_state> load(steps_of wanted) override {
    auto loaded = forwarding_store::load(wanted);
    if (loaded)
      steps_loaded = loaded->steps.size();
    return loaded;
  }

  std::size_t steps_loaded = 0;
};

exec_spec request(std::uint64_t step) {
  exec_spec x;
  x.argv = {"exit", "0"};
  x.step = step;
  return x;
}

/// A state directory of a machine on which many sandboxes have come and gone.
struct history : machine_fixture {
  history() {
    crash();
    auto counting = std::make_unique<counting_store>(make_memory_store());
    counter = counting.get();
    durable = std::move(counting);
    write_batch batch;
    batch.meta.push_back({make_node_id(0xd5ec), "boot-1", 1, 10'000});
    job_record job;
    job.id = job_id{"train"};
    job.next_index = ended;
    batch.jobs.push_back(job);
    for (std::uint64_t i = 0; i < ended; ++i) {
      sandbox_record x;
      x.id = ids.emplace_back(make_sandbox_id(batch.meta[0].node, i + 1));
      x.job = job.id;
      x.index = i;
      x.environment = small_environment();
      x.is = x.wanted = sandbox_state::terminated;
      x.cause = end_cause::stopped;
      x.told = event_kind::stopped;
      x.created_ms = 1;
      x.ended_ms = static_cast<std::int64_t>(2 + i);
      x.processes = {unrecorded_execs + 7};
      for (std::uint64_t n = 0; n < steps_each; ++n) {
        exec_result done;
        done.outcome = {outcome_kind::exited};
        done.out = "output of " + std::to_string(n);
        done.out_bytes = done.out.size();
        batch.steps.push_back({x.id, n, n, request_digest(request(n)), done});
      }
      batch.sandboxes.push_back(std::move(x));
    }
    BOOST_REQUIRE(durable->commit({std::make_shared<const write_batch>(std::move(batch))}));
  }

  counting_store* counter = nullptr;
  std::vector<sandbox_id> ids;
};

/// The callers of the embedded runtime, on the test's own thread.
struct callers {
  explicit callers(process& at)
    : system{at.actors().cluster.home_system()},
      core{std::make_shared<runtime_core>(system, at.actors(), nullptr)} {}

  ~callers() {
    core->close();
  }

  caf::actor_system& system;
  std::shared_ptr<runtime_core> core;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(the_steps_of_sandboxes_that_have_ended_stay_in_the_store, history) {
  const auto before = ::mallinfo2().uordblks;
  start();
  now->settle();
  const auto each = (::mallinfo2().uordblks - before) / ended;
  BOOST_TEST(counter->steps_loaded == 0u);
  BOOST_TEST_MESSAGE(each << " bytes are kept of a sandbox that has ended");
  if (counts_memory)
    BOOST_TEST(each < bytes_each_max);

  // Who asks is told all of it.
  auto all = now->ask<inventory_ptr>(now->actors().node_handle, inventory_query{{}, true});
  BOOST_TEST_REQUIRE(bool(all));
  BOOST_TEST((*all)->sandboxes.size() == ended);
  for (const auto& x : (*all)->sandboxes)
    BOOST_TEST_REQUIRE(x.steps == steps_each);
  auto step = now->ask<step_record_ptr>(now->actors().journal, load_step{ids[700], 19});
  BOOST_TEST_REQUIRE(bool(step));
  BOOST_TEST((*step)->result->out == "output of 19");
}

BOOST_FIXTURE_TEST_CASE(only_the_steps_of_what_lives_are_loaded, history) {
  start();
  auto job = open("train");
  auto id = create(job);
  for (std::uint64_t n = 0; n < 3; ++n)
    BOOST_REQUIRE(now->ask<exec_result_ptr>(find(id), command({"exit", "0"}, n)));
  crash();
  job = nullptr;
  start();
  now->settle();
  BOOST_TEST(counter->steps_loaded == 3u);
  auto again = now->ask<exec_result_ptr>(find(id), command({"exit", "0"}, 2));
  BOOST_TEST_REQUIRE(bool(again));
  BOOST_TEST((*again)->replayed);
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_has_ended_is_held_by_nobody_who_has_asked_it) {
  machine_fixture at;
  auto job = at.open("train");
  callers asking{*at.now};
  auto& registry = asking.system.registry();
  at.now->settle();
  const auto before = registry.running();
  std::vector<sandbox_id> ids;
  std::vector<future<exec_result>> answers;
  for (int i = 0; i < 20; ++i)
    ids.push_back(at.create(job));
  BOOST_TEST(registry.running() == before + ids.size());
  for (const auto& id : ids)
    answers.push_back(
      asking.core->ask<exec_result>([=](requester* self, const debt<exec_result>& owed) {
        ask_sandbox<exec_result_ptr>(
          self, id, command({"exit", "0"}, 1), [=](const exec_result_ptr& x) { owed.pay(*x); },
          [=](const error& e, const sandbox_info*) { owed.pay(e); });
      }));
  at.now->advance(1s);
  for (const auto& each : answers)
    BOOST_TEST_REQUIRE((each.ready() && each.get()));
  for (const auto& id : ids)
    BOOST_REQUIRE(at.now->ask<ack>(at.find(id), stop_request{}));
  // The longest that a timer of its own keeps one.
  at.now->advance(2min);
  BOOST_TEST(registry.running() == before);
}
