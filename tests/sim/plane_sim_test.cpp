#define BOOST_TEST_MODULE sim_plane

#include "state/event_invariants.hpp"
#include "state/idempotency.hpp"
#include "state/invariants.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

/// A trainer that does whatever comes to its mind, on a machine and in a process that break.
struct world : machine_fixture {
  explicit world(std::uint64_t seed_of_all)
    : machine_fixture{seed_of_all},
      chance{seed_of_all * 77 + 5} {
    job = open("train", lease);
    changed = [this](const sandbox_record& x) {
      if (frees_key(x))
        freed.insert(x.id);
      if (x.is == sandbox_state::terminated)
        BOOST_TEST(std::ranges::count(machine.alive(), x.id) == 0,
                   "sandbox " << x.id << " is said to have ended, but holds resources");
    };
  }

  ~world() {
    forget_handles();
  }

  bool one_in(std::uint64_t n) {
    return chance.below(n) == 0;
  }

  void forget_handles() {
    handles.clear();
    pending.clear();
    job = nullptr;
  }

  void restart(bool power_lost) {
    forget_handles();
    if (power_lost)
      reboot();
    else
      crash();
    time.advance_to(time.now() + std::chrono::milliseconds{chance.below(500)});
    killed = 0;
    start();
    job = open("train", lease);
    for (const auto& id : ids)
      take_handle(id);
  }

  void take_handle(const sandbox_id& id) {
    auto found = now->send<find_reply>(now->actors().cluster, find_sandbox{id});
    now->settle();
    BOOST_TEST_REQUIRE(found->has_value());
    BOOST_TEST_REQUIRE(**found);
    if ((**found)->actor)
      handles[id] = (**found)->actor;
  }

  void create_one() {
    auto key = "k" + std::to_string(chance.below(keys));
    auto sent = now->send<create_reply_ptr>(job, create_batch{{{key, small_environment()}}});
    now->settle();
    if (!*sent || !**sent || !(**sent)->get()->sandboxes[0])
      return;
    auto id = *(**sent)->get()->sandboxes[0];
    auto [known, fresh] = by_key.emplace(key, id);
    if (!fresh && known->second == id)
      return;
    BOOST_TEST((fresh || freed.contains(known->second)),
               "key " << key << " named " << known->second << ", now " << id);
    known->second = id;
    ids.push_back(id);
    take_handle(id);
    if (one_in(4))
      now->send<ack>(handles.at(id), stop_request{});
  }

  std::vector<std::string> request_of(const sandbox_id& id, std::uint64_t step) {
    auto kind = (std::hash<std::string>{}(id.str()) + step * 31) % 40;
    if (kind == 0)
      return {"self-destruct"};
    if (kind < 20)
      return {"exit", std::to_string(step % 5)};
    return {"think-ms", std::to_string(step * 7 % 90)};
  }

  void run_step(const sandbox_id& id, const sandbox_actor& actor) {
    auto step = one_in(3) ? chance.below(steps[id] + 1) : steps[id]++;
    pending.push_back(
      {id, step, now->send<exec_result_ptr>(actor, command(request_of(id, step), step))});
  }

  /// What was acknowledged once stays so.
  void collect() {
    std::erase_if(pending, [&](const auto& x) {
      if (!*x.reply)
        return false;
      if (**x.reply)
        remember(x.id, x.step, *(***x.reply));
      else
        BOOST_TEST((**x.reply).error().code != errc::diverged);
      return true;
    });
  }

  void remember(const sandbox_id& id, std::uint64_t step, exec_result result) {
    result.replayed = false;
    auto [known, fresh] = acknowledged.emplace(std::pair{id, step}, result);
    BOOST_TEST((known->second == result),
               "sandbox " << id << " step " << step << " was acknowledged with another result");
  }

  /// The worst moment: an answer has just been seen, and nothing after it was done.
  void crash_at_an_answer() {
    auto answered = [&] {
      return std::ranges::any_of(pending, [](const auto& x) { return x.reply->has_value(); });
    };
    for (int i = 0; i < 20 && !answered(); ++i) {
      for (int j = 0; j < 500 && !answered(); ++j)
        now->step(1);
      if (!answered())
        now->tick();
    }
    collect();
    restart(false);
  }

  void ask_something(const sandbox_id& id, const sandbox_actor& actor) {
    switch (chance.below(12)) {
    case 0:
      now->send<reclaim_report>(actor, pause_request{one_in(2), one_in(4)});
      break;
    case 1:
    case 2:
      now->send<ack>(actor, resume_request{});
      break;
    case 3:
      now->send<exec_result_ptr>(actor, command({"think-ms", "20"}, {}, 1));
      break;
    case 4:
      now->tell(actor, cancel_exec{1});
      break;
    case 5:
      if (one_in(3))
        now->send<ack>(actor, stop_request{});
      break;
    case 6:
      if (one_in(4))
        now->send<preempt_report>(job, preempt_job{one_in(2) ? preempt_mode::until_request
                                                             : preempt_mode::until_resume});
      break;
    case 7:
      now->send<ack>(job, resume_request{});
      break;
    default:
      run_step(id, actor);
      break;
    }
  }

  /// As a bug would: its supervisor starts it anew.
  void kill_an_actor() {
    if (++killed > 5)
      return;
    if (handles.empty() || one_in(2)) {
      caf::anon_send_exit(job, caf::exit_reason::unhandled_exception);
      now->settle();
      job = open("train", lease);
      return;
    }
    auto at = std::next(handles.begin(), static_cast<std::ptrdiff_t>(chance.below(handles.size())));
    auto id = at->first;
    caf::anon_send_exit(at->second, caf::exit_reason::unhandled_exception);
    handles.erase(at);
    now->settle();
    take_handle(id);
  }

  void act() {
    machine.faults = {};
    if (one_in(4))
      machine.faults = {100, 50, 100, 300, 20, 20};
    if (ids.size() < keys && one_in(4))
      create_one();
    if (!handles.empty()) {
      auto at =
        std::next(handles.begin(), static_cast<std::ptrdiff_t>(chance.below(handles.size())));
      // Sometimes several at once: verbs that overtake one another.
      for (auto verbs = one_in(3) ? 3 : 1; verbs > 0; --verbs)
        ask_something(at->first, at->second);
    }
    if (one_in(3))
      now->step(chance.below(40));
    else
      now->advance(std::chrono::milliseconds{chance.below(120)});
    collect();
    if (one_in(20))
      kill_an_actor();
    if (one_in(14))
      restart(one_in(12));
    else if (one_in(20))
      crash_at_an_answer();
  }

  void check_always() {
    for (const auto& [exec, times] : machine.truth().begun)
      BOOST_TEST(times == 1, "exec " << exec.second << " of " << exec.first << " was begun "
                                     << times << " times");
    BOOST_TEST(machine.truth().revived.empty());
    auto state = durable->load();
    BOOST_REQUIRE(state);
    for (const auto& broken : violations(*state))
      BOOST_ERROR(broken);
    auto page = durable->events(job_id{"train"}, 1, events_kept_max);
    BOOST_REQUIRE(page);
    for (const auto& broken : disagreements(*state, job_id{"train"}, page->events))
      BOOST_ERROR(broken);
  }

  void check_at_the_end() {
    machine.faults = {};
    restart(false);
    now->advance(5min);
    for (const auto& [of, result] : acknowledged) {
      auto kept = durable->step(of.first, of.second);
      BOOST_TEST_REQUIRE(kept);
      BOOST_TEST_REQUIRE(kept->result.has_value());
      BOOST_TEST((*kept->result == result));
    }
    BOOST_TEST_REQUIRE(now->ask<ack>(job, stop_request{}));
    now->advance(5min);
    BOOST_TEST(machine.alive().empty());
    for (const auto& id : ids)
      BOOST_TEST(info(id).state == sandbox_state::terminated);
    check_always();
  }

  struct pending_step {
    sandbox_id id;
    std::uint64_t step = 0;
    answer<exec_result_ptr> reply;
  };

  static constexpr std::uint64_t keys = 10;

  lease_terms lease{20s, 2min};
  int killed = 0; ///< Actors of this process, each of which may die seven times.
  sim_random chance;
  job_actor job;
  std::vector<sandbox_id> ids;
  std::map<std::string, sandbox_id> by_key;
  std::set<sandbox_id> freed; ///< Whose key may name another one.
  std::map<sandbox_id, sandbox_actor> handles;
  std::map<sandbox_id, std::uint64_t> steps;
  std::vector<pending_step> pending;
  std::map<std::pair<sandbox_id, std::uint64_t>, exec_result> acknowledged;
};

void simulate(std::uint64_t seed) {
  world w{seed};
  for (int i = 0; i < 80; ++i)
    w.act();
  w.check_always();
  w.check_at_the_end();
}

} // namespace

BOOST_AUTO_TEST_CASE(whatever_breaks_no_step_is_lost_or_run_twice_and_nothing_is_left_behind) {
  const char* only = std::getenv("DSEC_SIM_SEED");
  const char* count = std::getenv("DSEC_SIM_SEEDS");
  auto first = only ? std::strtoull(only, nullptr, 10) : 1;
  auto last = only ? first : first + (count ? std::strtoull(count, nullptr, 10) : 200) - 1;
  for (auto seed = first; seed <= last; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed << "; rerun: DSEC_SIM_SEED=" << seed
                               << " ctest -R sim_plane")
  simulate(seed);
}
