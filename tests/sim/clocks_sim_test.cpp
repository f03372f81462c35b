#define BOOST_TEST_MODULE sim_clocks

#include "tests/support/actor_fixture.hpp"
#include "tests/support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t sandboxes = 10'000;

/// What no sandbox stays in for long, whatever happens.
bool passing(sandbox_state x) {
  using S = sandbox_state;
  return x == S::pending || x == S::starting || x == S::pausing || x == S::reclaiming
         || x == S::resuming || x == S::stopping || x == S::failed;
}

/// Many sandboxes with short lives, a client that prolongs, cuts, pauses, uses and stops them at
/// random, and a control plane that is killed at random.
struct crowd : machine_fixture {
  explicit crowd(std::uint64_t seed_of_all)
    : machine_fixture{seed_of_all},
      chance{seed_of_all * 131 + 7} {
    options.capacity = 2 * sandboxes;
    options.tombstones = 2 * sandboxes;
    changed = [this](const sandbox_record& x) {
      hear(x);
    };
    restart(0ms);
  }

  ~crowd() {
    forget();
  }

  void forget() {
    handles.clear();
    setting.clear();
    job = nullptr;
  }

  void restart(std::chrono::milliseconds down) {
    check_passing();
    forget();
    crash();
    time.advance_to(time.now() + down);
    start();
    // What was under way is taken up again from here.
    for (auto& [id, since] : in_passing)
      since = time.now();
    job = open("train");
    for (const auto& [id, life] : lives_of)
      if (!life.over)
        handles[id] = find(id);
  }

  void hear(const sandbox_record& x) {
    if (passing(x.is))
      in_passing.try_emplace(x.id, time.now());
    else
      in_passing.erase(x.id);
    if (x.is != sandbox_state::terminated)
      return;
    auto& life = lives_of[x.id];
    life.over = true;
    life.ended_at = time.now();
    life.cause = x.cause;
    handles.erase(x.id);
  }

  void check_passing() {
    for (const auto& [id, since] : in_passing)
      BOOST_TEST(time.now() - since < 2s, id << " has been in passing for too long");
  }

  void create(std::size_t count) {
    create_batch batch;
    std::vector<std::chrono::milliseconds> asked;
    for (std::size_t i = 0; i < count; ++i) {
      asked.emplace_back(1000 + chance.below(4000));
      batch.items.push_back({{}, small_environment(), {asked.back()}});
    }
    auto born = time.now();
    auto sent = now->send<create_reply_ptr>(job, std::move(batch));
    now->settle();
    BOOST_TEST_REQUIRE(sent->has_value());
    BOOST_TEST_REQUIRE(bool(**sent));
    for (std::size_t i = 0; i < count; ++i) {
      const auto& made = (**sent)->get()->sandboxes[i];
      BOOST_TEST_REQUIRE(bool(made), made);
      auto& life = lives_of[*made];
      life.born = born;
      life.terms = {{0, asked[i], asked[i]}};
      handles[*made] = find(*made);
    }
  }

  /// What was answered holds, and what was asked before it does not.
  void collect() {
    std::erase_if(setting, [&](const auto& x) {
      if (!*x.answered)
        return false;
      if (**x.answered)
        std::erase_if(lives_of[x.id].terms, [&](const auto& y) { return y.number < x.number; });
      return true;
    });
  }

  void act() {
    auto at = std::next(handles.begin(), static_cast<std::ptrdiff_t>(chance.below(handles.size())));
    const auto& [id, actor] = *at;
    switch (chance.below(8)) {
    case 0:
    case 1:
    case 2: {
      std::chrono::milliseconds total{500 + chance.below(7000)};
      auto& life = lives_of[id];
      life.terms.push_back(
        {++numbers, std::max<sim_time::duration>(total, time.now() - life.born), total});
      setting.push_back({id, numbers, now->send<ack>(actor, set_clocks{{total}})});
      break;
    }
    case 3:
      now->send<reclaim_report>(actor, pause_request{chance.below(4) == 0});
      break;
    case 4:
      now->send<ack>(actor, resume_request{});
      break;
    case 5:
      now->send<exec_result_ptr>(actor, command({"think-ms", "3000"}));
      break;
    case 6:
      if (chance.below(4) == 0) {
        lives_of[id].stopped = true;
        now->send<ack>(actor, stop_request{});
      }
      break;
    default:
      now->send<exec_result_ptr>(actor, command({"exit", "0"}));
      break;
    }
  }

  void check_ends() {
    std::size_t expired = 0;
    for (const auto& [id, life] : lives_of)
      BOOST_TEST_CONTEXT("sandbox " << id) {
        BOOST_TEST_REQUIRE(life.over);
        if (life.stopped && life.cause == end_cause::stopped)
          continue;
        BOOST_TEST(life.cause == end_cause::time_to_live);
        ++expired;
        auto first = std::ranges::min(life.terms, {}, &term::total).total;
        auto last = std::ranges::max(life.terms, {}, &term::latest).latest;
        // Never early; late by no more than the node was down and a tear-down takes.
        BOOST_TEST((life.ended_at >= life.born + first));
        BOOST_TEST((life.ended_at <= life.born + last + 2s));
      }
    BOOST_TEST(expired > sandboxes / 2);
    BOOST_TEST(machine.alive().empty());
    BOOST_TEST(in_passing.empty());
  }

  /// A time to live that may hold.
  struct term {
    std::uint64_t number = 0;
    sim_time::duration latest{0}; ///< After its birth: it was not asked for earlier.
    std::chrono::milliseconds total{0};
  };

  struct life_of {
    sim_time::duration born{0};
    std::vector<term> terms;
    bool stopped = false;
    bool over = false;
    sim_time::duration ended_at{0};
    end_cause cause = end_cause::none;
  };

  struct set_under_way {
    sandbox_id id;
    std::uint64_t number = 0;
    answer<ack> answered;
  };

  sim_random chance;
  job_actor job;
  std::map<sandbox_id, life_of> lives_of;
  std::map<sandbox_id, sandbox_actor> handles;
  std::map<sandbox_id, sim_time::duration> in_passing;
  std::vector<set_under_way> setting;
  std::uint64_t numbers = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(of_ten_thousand_with_a_time_to_live_all_end_in_time_whatever_is_done_to_them) {
  crowd all{6};
  for (int i = 0; i < 20; ++i) {
    all.create(sandboxes / 20);
    all.now->advance(20ms);
  }
  for (int round = 0; round < 150 && !all.handles.empty(); ++round) {
    for (int i = 0; i < 40 && !all.handles.empty(); ++i)
      all.act();
    if (all.chance.below(3) == 0)
      all.now->step(all.chance.below(400));
    else
      all.now->advance(std::chrono::milliseconds{all.chance.below(100)});
    all.collect();
    all.check_passing();
    if (all.chance.below(15) == 0)
      all.restart(std::chrono::milliseconds{all.chance.below(500)});
  }
  all.now->advance(10s);
  all.collect();
  all.check_ends();
}
