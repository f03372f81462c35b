// Under load: the runtime answers others, and what it calls running can be used.
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;
namespace utf = boost::unit_test;

namespace {

using clock_type = std::chrono::steady_clock;

const job_options no_lease{{0ms, 0ms}};

create_options small() {
  create_options x;
  x.environment = machine().environment();
  x.environment.limits.memory_bytes = 32 << 20;
  x.environment.limits.disk_bytes = 8 << 20;
  return x;
}

/// Latencies of one kind of question, in milliseconds.
class latencies {
public:
  void add(clock_type::time_point begun) {
    all_.push_back(std::chrono::duration<double, std::milli>(clock_type::now() - begun).count());
  }

  double at(double quantile) {
    std::sort(all_.begin(), all_.end());
    if (all_.empty())
      return 0;
    return all_[std::min(all_.size() - 1,
                         static_cast<std::size_t>(quantile * static_cast<double>(all_.size())))];
  }

  std::size_t count() const {
    return all_.size();
  }

private:
  std::vector<double> all_;
};

/// Bytes of anonymous memory that this process, or `pid`, holds.
std::uint64_t resident(const std::string& pid = "self") {
  std::ifstream in{"/proc/" + pid + "/status"};
  for (std::string word; in >> word;)
    if (word == "RssAnon:") {
      std::uint64_t kib = 0;
      in >> kib;
      return kib << 10;
    }
  return 0;
}

/// Takes the first piece and no more.
class stuck_reader : public output_sink {
public:
  void write(stream, std::string bytes, std::function<void()> ready) override {
    std::unique_lock lock{mutex_};
    taken_ += bytes.size();
    if (goes_on_) {
      lock.unlock();
      return ready();
    }
    waiting_.push_back(std::move(ready));
    arrived_.notify_all();
  }

  void wait_first() {
    std::unique_lock lock{mutex_};
    arrived_.wait(lock, [&] { return !waiting_.empty(); });
  }

  /// Takes all that comes from now on.
  void go_on() {
    std::vector<std::function<void()>> waiting;
    {
      std::scoped_lock lock{mutex_};
      goes_on_ = true;
      waiting.swap(waiting_);
    }
    for (auto& ready : waiting)
      ready();
  }

  std::uint64_t taken() {
    std::scoped_lock lock{mutex_};
    return taken_;
  }

private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::function<void()>> waiting_;
  std::uint64_t taken_ = 0;
  bool goes_on_ = false;
};

} // namespace

BOOST_AUTO_TEST_SUITE(api_load, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(five_hundred_creates_at_once_leave_the_runtime_answering_others) {
  auto& at = machine();
  auto rt = at.open(at.new_state());
  auto probed = playground::one_sandbox(*rt, small().environment, "probed");
  auto job = value(rt->open_job("burst", no_lease));
  auto made = job.create_batch(std::vector<create_options>(500, small()));
  latencies info, listing, command;
  auto created = [&] {
    return std::all_of(made.begin(), made.end(), [](const auto& x) { return x.ready(); });
  };
  for (auto next = clock_type::now(); !created(); next += 100ms) {
    std::this_thread::sleep_until(next); // The beat of the probe.
    auto begun = clock_type::now();
    value(probed.info());
    info.add(begun);
    begun = clock_type::now();
    value(rt->list());
    listing.add(begun);
    begun = clock_type::now();
    BOOST_TEST(value(probed.exec(exec_spec{{"true"}})).ok());
    command.add(begun);
  }
  for (const auto& each : made)
    value(each);
  BOOST_TEST_MESSAGE(fmt::format("{} probes; p99 of info {:.1f} ms, list {:.1f} ms, exec {:.1f} ms",
                                 info.count(), info.at(0.99), listing.at(0.99), command.at(0.99)));
  BOOST_TEST(info.at(0.99) < 50);
  BOOST_TEST(listing.at(0.99) < 50);
  // A command needs a process of its own, which shares the cores with the creates and with whatever
  // else the machine does; 50 ms hold where that is nothing.
  BOOST_TEST(command.at(0.99) < 250);
  done(job.close());
  done(probed.stop());
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_is_said_to_run_runs_a_command_at_once) {
  auto& at = machine();
  auto rt = at.open(at.new_state());
  auto job = value(rt->open_job("at-once", no_lease));
  const std::size_t total = at_size(500, 10'000);
  constexpr std::size_t width = 8;
  std::atomic<std::size_t> next{0}, good{0};
  std::mutex mutex;
  std::map<std::string, std::size_t> wrong;
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < width; ++i)
    callers.emplace_back([&] {
      auto note = [&](const std::string& what) {
        std::scoped_lock lock{mutex};
        ++wrong[what];
      };
      while (next++ < total) {
        auto box = job.create(small()).get();
        if (!box) {
          note("create: " + box.error().message);
          continue;
        }
        auto ran = box->exec(exec_spec{{"echo", "up"}}).get();
        if (!ran)
          note("exec: " + ran.error().message);
        else if (!ran->ok() || ran->out != "up\n")
          note(fmt::format("exec: {} {}", to_string(ran->outcome.kind), ran->outcome.cause));
        else
          ++good;
        if (auto stopped = box->stop().get(); !stopped)
          note("stop: " + stopped.error().message);
      }
    });
  for (auto& each : callers)
    each.join();
  for (const auto& [what, count] : wrong)
    BOOST_ERROR(count << " times " << what);
  BOOST_TEST(good == total);
  done(job.close());
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_AUTO_TEST_CASE(a_gibibyte_that_nobody_reads_is_counted_and_kept_by_no_process_of_ours) {
  auto& at = machine();
  auto rt = at.open(at.new_state());
  auto box = playground::one_sandbox(*rt, at.environment());
  auto init = std::to_string(demo::init_pids(installation_of(at)).at(box.id().str()));
  constexpr std::uint64_t slack = 32 << 20;
  const std::uint64_t bytes = 1ull << 30;
  value(box.exec(exec_spec::shell("dd if=/dev/zero bs=1M count=4 2>/dev/null")));
  auto ours = resident();
  auto its = resident(init);
  // Collected: what does not fit the spool is dropped and counted.
  auto flood = value(
    box.exec(exec_spec::shell(fmt::format("dd if=/dev/zero bs=1M count={} 2>/dev/null", 1024))));
  BOOST_TEST(flood.ok());
  BOOST_TEST(flood.out.size() == exec_spec{}.spool_bytes);
  BOOST_TEST(flood.out_bytes == bytes);
  BOOST_TEST(resident() < ours + slack);
  BOOST_TEST(resident(init) < its + slack);

  // Streamed to a reader that has stopped: it waits, in the sandbox, and nobody else does.
  auto reader = std::make_shared<stuck_reader>();
  auto stuck = box.start(exec_spec::shell("dd if=/dev/zero bs=1M count=1024 2>/dev/null"), reader);
  reader->wait_first();
  for (int i = 0; i < 20; ++i)
    BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  BOOST_TEST(!stuck.result().ready());
  BOOST_TEST(reader->taken() < slack);
  BOOST_TEST(resident() < ours + slack);
  BOOST_TEST(resident(init) < its + slack);
  stuck.cancel();
  reader->go_on();
  BOOST_TEST((value(stuck.result()).outcome.kind == outcome_kind::cancelled));
  done(box.stop());
}

BOOST_AUTO_TEST_SUITE_END()
