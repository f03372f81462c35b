// Lost replies, stalled daemons and second owners: at most one effect, and no death without proof.
#include "sdk/cli/client.hpp"
#include "sdk/front/convert.hpp"
#include "tests/scenarios/heard_events.hpp"
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;
namespace utf = boost::unit_test;

namespace {

const job_options no_lease{{0ms, 0ms}};

create_options named(const std::string& key) {
  create_options x;
  x.environment = machine().environment();
  x.idempotency_key = key;
  return x;
}

/// When a client goes away without the answer to its create.
enum class loss { as_it_is_sent, as_it_is_worked_on, when_it_is_done };

/// A client that sends a create over the runtime's socket and never hears what became of it.
void lose_reply(const std::filesystem::path& state, const create_options& wanted, loss when,
                const std::function<void()>& until_done) {
  std::thread{[&] {
    auto to = connect(state);
    BOOST_TEST(bool(to), (to ? "" : to.error().message));
    if (!to)
      return;
    auto& from = **to;
    auto find = from.dsec.jobRequest();
    find.setName("lossy");
    auto job = wait(from, find.send());
    BOOST_TEST(bool(job), (job ? "" : job.error().message));
    if (!job)
      return;
    auto create = job->getJob().createRequest();
    auto item = create.initItem();
    item.setIdempotencyKey(wanted.idempotency_key);
    wire::write(wanted.environment, item.initEnvironment());
    auto answer = create.send();
    if (when == loss::as_it_is_sent)
      return;
    // The next answer comes after the create was taken up.
    BOOST_TEST(bool(wait(from, from.dsec.listRequest().send())));
    if (when == loss::when_it_is_done)
      until_done();
  }}.join();
}

void signal_all(const std::vector<int>& pids, int number) {
  for (int pid : pids)
    BOOST_TEST_REQUIRE(::kill(pid, number) == 0);
}

/// Stops processes for some time: a daemon that the machine gives no time to.
void stall(const std::vector<int>& pids, std::chrono::milliseconds length) {
  signal_all(pids, SIGSTOP);
  std::this_thread::sleep_for(length); // The stall itself.
  signal_all(pids, SIGCONT);
}

} // namespace

BOOST_AUTO_TEST_SUITE(lifecycle_control, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(a_create_whose_reply_was_lost_is_asked_again_and_made_once) {
  auto& at = machine();
  auto state = at.new_state();
  auto rt = at.open(state);
  auto job = value(rt->open_job("lossy", no_lease));
  heard_events heard{job};
  auto run = [&](std::size_t count) {
    return heard.wait([](const job_event& x) { return x.kind == event_kind::running; }, count);
  };
  std::set<std::string> all;
  const auto rounds = at_size(30, 100);
  for (std::size_t i = 0; i < rounds; ++i) {
    auto wanted = named(fmt::format("k{}", i));
    lose_reply(state, wanted, static_cast<loss>(i % 3), [&] { BOOST_TEST_REQUIRE(run(i + 1)); });
    auto box = value(job.create(wanted));
    BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
    BOOST_TEST((value(job.create(wanted)).id() == box.id()));
    BOOST_TEST_REQUIRE(run(i + 1));
    all.insert(box.id().str());
    BOOST_TEST_REQUIRE(value(rt->list(true)).size() == i + 1);
  }
  BOOST_TEST(all.size() == rounds);
  done(job.close());
  BOOST_TEST(value(rt->list()).empty());
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_AUTO_TEST_CASE(daemons_that_stall_are_waited_for_and_healthy_sandboxes_are_not_killed) {
  auto& at = machine();
  auto where = installation_of(at);
  auto rt = at.open(at.new_state());
  auto job = value(rt->open_job("stalled", no_lease));
  auto box = value(job.create(named("busy")));
  // Silent and busy for longer than the stall.
  auto busy = box.exec(exec_spec::shell("while [ ! -e /room/end ]; do :; done; echo done"));
  auto init = demo::init_pids(where).at(box.id().str());
  auto spawner = demo::spawner_pid(where);
  const auto length = full_size() ? 30'000ms : 3'000ms;

  future<sandbox> made;
  future<exec_result> asked;
  future<void> paused;
  signal_all({init, spawner}, SIGSTOP);
  made = job.create(named("meanwhile"));
  asked = box.exec(exec_spec{{"echo", "late"}});
  stall({init, spawner}, length);
  BOOST_TEST(value(asked).out == "late\n");
  BOOST_TEST(value(value(made).exec(exec_spec{{"true"}})).ok());

  signal_all({init}, SIGSTOP);
  paused = box.pause();
  stall({init}, length);
  done(paused);
  done(box.resume());
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
  done(box.write("/room/end", ""));
  auto x = value(busy);
  BOOST_TEST(x.ok());
  BOOST_TEST(x.out == "done\n");
  for (const auto& info : value(rt->list(true)))
    BOOST_TEST((info.cause == end_cause::none));
  done(job.close());
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_stalls_past_its_lease_hears_the_renewals_before_it_acts) {
  auto& at = machine();
  auto where = installation_of(at);
  auto rt = at.open(at.new_state());
  // The trainer lives and renews all the time; what is stalled cannot hear it.
  auto job = value(rt->open_job("leased", {{600ms, 1200ms}}));
  auto box = value(job.create(named("leased")));
  auto init = demo::init_pids(where).at(box.id().str());
  for (int round = 0; round < 3; ++round) {
    stall({init}, 2500ms);
    auto x = box.exec(exec_spec{{"true"}}).get();
    BOOST_TEST_REQUIRE(bool(x), (x ? "" : x.error().message));
    BOOST_TEST(x->ok());
    BOOST_TEST((value(box.info()).cause == end_cause::none));
  }
  done(job.close());
}

BOOST_AUTO_TEST_CASE(an_owner_that_was_replaced_while_it_slept_has_no_effect_any_more) {
  auto& at = machine();
  auto where = installation_of(at);
  auto state = at.new_state();
  child_process sleeper{
    {at.programs / "scenario_trainer", state, at.data_dir, at.run_dir, at.layer.str(), "rival"}};
  auto id = sleeper.line().value_or("");
  BOOST_TEST_REQUIRE(sleeper.line().value_or("") == "ready");
  sleeper.kill(SIGSTOP);
  sleeper.kill(SIGUSR1); // It will act as soon as it wakes.
  // Its lock is lost with the disk that held it: the same state is opened elsewhere.
  auto moved = at.root / "moved";
  BOOST_TEST_REQUIRE(run_program({"/bin/cp", "-a", state, moved}).code == 0);
  auto rt = at.open(moved);
  auto box = value(rt->find(sandbox_id{id}));
  auto mine = exec_spec::shell("echo owner >> /room/log");
  BOOST_TEST(value(box.exec(mine)).ok());

  sleeper.kill(SIGCONT);
  auto ran = sleeper.line().value_or("");
  auto stopped = sleeper.line().value_or("");
  BOOST_TEST(ran == "did not run");
  BOOST_TEST(stopped.starts_with("refused"), stopped);
  BOOST_TEST(value(box.exec(mine)).ok());
  BOOST_TEST(value(box.read("/room/log")) == "owner\nowner\n");
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
  sleeper.kill(SIGKILL);
  sleeper.wait();
  done(value(rt->find_job("rollout")).close());
  BOOST_TEST(residue(where) == "");
}

BOOST_AUTO_TEST_SUITE_END()
