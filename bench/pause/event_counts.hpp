#pragma once

#include "bench/report.hpp"
#include "state/event.hpp"

#include <condition_variable>
#include <map>
#include <mutex>

namespace dsec::bench {

/// Counts the events of each kind, and when the newest came. Any thread.
class event_counts {
public:
  /// From now on.
  void reset() {
    std::scoped_lock lock{mutex_};
    counted_.clear();
    clock_ = {};
  }

  void count(const job_event& event) {
    std::scoped_lock lock{mutex_};
    auto& kind = counted_[event.kind];
    ++kind.count;
    kind.newest_ms = clock_.ms();
    changed_.notify_all();
  }

  /// Milliseconds from `reset` until `count` had come; waits for them.
  double ms_until(event_kind kind, unsigned count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return counted_[kind].count >= count; });
    return counted_[kind].newest_ms;
  }

private:
  struct entries {
    unsigned count = 0;
    double newest_ms = 0;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<event_kind, entries> counted_;
  stopwatch clock_;
};

} // namespace dsec::bench
