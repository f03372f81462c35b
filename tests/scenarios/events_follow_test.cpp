// Followers of one job: each gets everything, whatever the others do.
#include "state/store.hpp"
#include "tests/scenarios/events_rig.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

struct opened {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);
  job owner = value(rt->open_job("train", no_lease()));
  sandbox box = value(owner.create({at.environment(), {}, {}}));

  void run(int times) {
    for (int i = 0; i < times; ++i)
      value(box.exec(exec_spec{{"true"}}));
  }
};

/// A state directory whose job has had so many events.
void fill(const std::filesystem::path& state, std::uint64_t count) {
  auto durable = open_rocks_store(state / "db");
  BOOST_TEST_REQUIRE(bool{durable});
  auto batch = std::make_shared<write_batch>();
  job_record record;
  record.id = job_id{"train"};
  record.created_ms = 1;
  batch->jobs.push_back(record);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto& x = batch->events.emplace_back();
    x.job = record.id;
    x.kind = event_kind::exec_started;
    x.exec = i;
  }
  BOOST_TEST_REQUIRE(bool{(*durable)->commit({batch})});
}

} // namespace

BOOST_AUTO_TEST_SUITE(events_follow, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_slow_follower_delays_neither_commands_nor_the_others, opened) {
  std::promise<void> go_on;
  auto held = go_on.get_future().share();
  heard_events slow, quick;
  std::atomic<bool> waits{false};
  auto slowly = owner.follow(1, [&, hear = slow.listener()](const job_event& x) {
    waits = true;
    held.wait();
    hear(x);
  });
  auto quickly = owner.follow(1, quick.listener());
  run(50);
  done(box.stop());
  BOOST_TEST(quick.wait_for(event_kind::stopped, box));
  BOOST_TEST(waits);
  BOOST_TEST(slow.all().empty());
  go_on.set_value();
  BOOST_TEST(slow.wait_for(event_kind::stopped, box));
  auto all = in_short(kept_events(owner));
  BOOST_TEST((in_short(slow.all()) == all));
  BOOST_TEST((in_short(quick.all()) == all));
}

BOOST_FIXTURE_TEST_CASE(a_dropped_follower_is_not_called_again, opened) {
  for (int round = 0; round < 20; ++round) {
    auto alive = std::make_shared<std::atomic<bool>>(true);
    std::atomic<int> calls{0};
    std::atomic<bool> late{false};
    auto reading = owner.follow(1, [&, alive](const job_event&) {
      late = late || !*alive;
      ++calls;
    });
    run(2);
    { auto dropped = std::move(reading); }
    *alive = false;
    auto before = calls.load();
    run(2);
    BOOST_TEST(!late);
    BOOST_TEST(calls == before);
  }
}

BOOST_FIXTURE_TEST_CASE(a_follower_may_be_dropped_from_within_its_own_call, opened) {
  std::optional<event_subscription> reading;
  std::promise<void> made, dropped;
  auto ready = made.get_future().share();
  std::atomic<int> calls{0};
  reading = owner.follow(1, [&](const job_event&) {
    ready.wait();
    ++calls;
    reading.reset();
    if (calls == 1)
      dropped.set_value();
  });
  made.set_value();
  dropped.get_future().wait();
  run(3);
  heard_events heard;
  auto other = owner.follow(1, heard.listener());
  done(box.stop());
  BOOST_TEST(heard.wait_for(event_kind::stopped, box));
  BOOST_TEST(calls == 1);
}

BOOST_FIXTURE_TEST_CASE(a_follower_is_told_once_when_a_closed_job_has_told_its_last, opened) {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<std::string> story;
  auto note = [&](std::string what) {
    std::scoped_lock lock{mutex};
    story.push_back(std::move(what));
    more.notify_all();
  };
  auto comes_to = [&](std::size_t overs) {
    std::unique_lock lock{mutex};
    auto count = [&] {
      return static_cast<std::size_t>(std::ranges::count(story, "over"));
    };
    return more.wait_for(lock, std::chrono::seconds{60}, [&] { return count() >= overs; })
           && count() == overs && story.back() == "over"
           && story[story.size() - 2] == "stopped stopped";
  };
  auto reading = owner.follow(
    1, [&](const job_event& x) { note(in_short(x)); }, [&] { note("over"); });
  run(1);
  done(owner.close());
  BOOST_TEST(comes_to(1));
  done(owner.close());

  // It is opened anew, and closed again.
  owner = value(rt->open_job("train", no_lease()));
  box = value(owner.create({at.environment(), {}, {}}));
  done(owner.close());
  BOOST_TEST(comes_to(2));
  reading = {};
}

BOOST_FIXTURE_TEST_CASE(followers_end_with_their_runtime, opened) {
  heard_events heard;
  auto reading = owner.follow(1, heard.listener());
  BOOST_TEST(heard.wait_for(event_kind::running, box));
  rt.reset();
  auto told = heard.all().size();
  rt = at.open(state);
  box = value(rt->find(box.id()));
  run(3);
  BOOST_TEST(heard.all().size() == told);
  auto none = owner.follow(1, heard.listener()); // Of a handle whose runtime is gone.
  auto page = owner.events().get();
  BOOST_TEST((!page && page.error().code == errc::unavailable));
}

BOOST_FIXTURE_TEST_CASE(a_runtime_closes_while_the_thread_that_follows_lives_on, opened) {
  std::promise<void> followed, closed;
  heard_events heard;
  std::thread other{[&] {
    auto reading = owner.follow(1, heard.listener());
    BOOST_TEST(heard.wait_for(event_kind::running, box));
    followed.set_value();
    closed.get_future().wait();
  }};
  followed.get_future().wait();
  rt.reset();
  closed.set_value();
  other.join();
}

BOOST_AUTO_TEST_CASE(a_client_that_does_not_read_delays_nobody) {
  auto& at = machine();
  auto state = at.new_state();
  fill(state, 20'000);
  auto rt = at.open(state);
  const std::vector<std::string> command{at.programs / "dsec", "--state-dir", state, "events",
                                         "train"};
  auto following = command;
  following.push_back("--follow");
  child_process idle{following};
  BOOST_TEST(idle.line().value_or("").starts_with("1  "));
  auto all = run_program(command);
  BOOST_TEST(all.code == 0, all.err);
  BOOST_TEST(std::ranges::count(all.out, '\n') == 20'000);
  BOOST_TEST(value(rt->list()).empty());
  rt.reset();
}

BOOST_AUTO_TEST_CASE(events_that_were_dropped_before_they_were_read_are_told_by_the_gap) {
  auto& at = machine();
  auto state = at.new_state();
  fill(state, events_kept_max + 5'000);
  auto rt = at.open(state);
  auto owner = value(rt->find_job("train"));
  auto page = value(owner.events(1, 10));
  BOOST_TEST(page.oldest > 5'000u);
  BOOST_TEST(page.events.front().cursor == page.oldest);
  BOOST_TEST(page.next == page.oldest + 10);
  heard_events heard;
  auto reading = owner.follow(1, heard.listener());
  BOOST_TEST(heard.wait([](const job_event& x) { return x.cursor == events_kept_max + 5'000; }));
  auto all = heard.all();
  BOOST_TEST(all.front().cursor == page.oldest);
  BOOST_TEST(all.size() == events_kept_max + 5'001 - page.oldest);
  auto cli = run_program({at.programs / "dsec", "--state-dir", state, "events", "train"});
  BOOST_TEST(cli.code == 0);
  BOOST_TEST(cli.err == fmt::format("dsec: events 1 to {} are kept no more\n", page.oldest - 1));
  BOOST_TEST(static_cast<std::size_t>(std::ranges::count(cli.out, '\n')) == all.size());
}

BOOST_AUTO_TEST_SUITE_END()
