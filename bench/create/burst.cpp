#include "bench/create/burst.hpp"

#include "bench/limit/limit_process.hpp"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dsec::bench {

namespace {

/// Follows sandboxes from create to stop on the runtime's threads.
class burst {
public:
  void follow(const future<sandbox>& created) {
    {
      std::scoped_lock lock{mutex_};
      ++under_way_;
    }
    created.then([this, clock = stopwatch{}](const result<sandbox>& box) {
      if (!box)
        return end(box.error().message);
      exec(*box, clock);
    });
  }

  void wait_until_below(unsigned count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return under_way_ < count; });
  }

  burst_report take() {
    wait_until_below(1);
    report_.wall_ms = clock_.ms();
    return std::move(report_);
  }

private:
  void exec(const sandbox& box, const stopwatch& clock) {
    exec_spec spec;
    spec.argv = {"/bin/true"};
    box.exec(std::move(spec)).then([this, box, clock](const result<exec_result>& answer) {
      const bool ok = answer && answer->ok();
      if (ok) {
        std::scoped_lock lock{mutex_};
        report_.answered_ms.add(clock.ms());
      }
      std::string failure;
      if (!ok)
        failure = answer ? fmt::format("true {} {}", answer->outcome.kind, answer->outcome.cause)
                         : answer.error().message;
      box.stop().then([this, failure](const result<void>& stopped) {
        end(stopped ? failure : stopped.error().message);
      });
    });
  }

  void end(const std::string& failure) {
    std::scoped_lock lock{mutex_};
    if (failure.empty()) {
      ++report_.done;
    } else if (++report_.failed == 1) {
      report_.first_failure = failure;
    }
    --under_way_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned under_way_ = 0;
  burst_report report_;
  stopwatch clock_;
};

} // namespace

burst_report create_through(testbed& bed, unsigned width, unsigned total) {
  burst all;
  for (unsigned i = 0; i < total; ++i) {
    all.wait_until_below(width);
    all.follow(bed.job().create({bed.environment(), {}}));
  }
  return all.take();
}

burst_report create_at_once(testbed& bed, unsigned count) {
  burst all;
  for (const auto& created :
       bed.job().create_batch(std::vector<create_options>(count, {bed.environment(), {}})))
    all.follow(created);
  return all.take();
}

double bare_per_second(const testbed& bed, const std::filesystem::path& scratch, unsigned total) {
  const auto cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<limit_process>> makers;
  for (unsigned i = 0; i < cores; ++i) {
    const auto folder = scratch / fmt::format("core-{}", i);
    std::filesystem::create_directory(folder);
    makers.push_back(
      std::make_unique<limit_process>(folder, bed.environment().limits, bed.layers()));
    makers.back()->run();
  }
  const stopwatch clock;
  std::vector<std::future<void>> at_work;
  for (auto& maker : makers)
    at_work.push_back(std::async(std::launch::async, [&maker, count = total / cores] {
      for (unsigned i = 0; i < count; ++i)
        maker->run();
    }));
  for (auto& each : at_work)
    each.get();
  return total / cores * cores / clock.ms() * 1000;
}

} // namespace dsec::bench
