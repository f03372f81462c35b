#pragma once

#include "bench/report.hpp"
#include "state/reports.hpp"

#include <condition_variable>
#include <map>
#include <mutex>

namespace dsec::bench {

/// Counts how many sandboxes have entered each state, and when the newest did. Any thread.
class state_counts {
public:
  /// From now on.
  void reset() {
    std::scoped_lock lock{mutex_};
    entered_.clear();
    clock_ = {};
  }

  void count(const sandbox_change& change) {
    std::scoped_lock lock{mutex_};
    auto& state = entered_[change.state];
    ++state.count;
    state.newest_ms = clock_.ms();
    changed_.notify_all();
  }

  /// Milliseconds from `reset` until `count` had entered `state`; waits for them.
  double ms_until(sandbox_state state, unsigned count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return entered_[state].count >= count; });
    return entered_[state].newest_ms;
  }

private:
  struct entries {
    unsigned count = 0;
    double newest_ms = 0;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<sandbox_state, entries> entered_;
  stopwatch clock_;
};

} // namespace dsec::bench
