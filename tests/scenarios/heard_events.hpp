#pragma once

#include "sdk/embed/runtime.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace dsec::test {

/// All that a follower was told. Any thread.
class heard_events {
public:
  /// Hears what its `listener` is told.
  heard_events() = default;

  /// Follows that job, from its first event on.
  explicit heard_events(const job& of) : reading_{of.follow(1, listener())} {}

  std::function<void(const job_event&)> listener() const {
    return [told = told_](const job_event& x) {
      std::scoped_lock lock{told->mutex};
      told->events.push_back(x);
      told->more.notify_all();
    };
  }

  std::vector<job_event> all() const {
    std::scoped_lock lock{told_->mutex};
    return told_->events;
  }

  /// Waits until so many such events have come, at most 60 s.
  bool wait(const std::function<bool(const job_event&)>& such, std::size_t count = 1) const {
    std::unique_lock lock{told_->mutex};
    std::size_t seen = 0, found = 0;
    return told_->more.wait_for(lock, std::chrono::seconds{60}, [&] {
      for (; seen < told_->events.size(); ++seen)
        found += such(told_->events[seen]);
      return found >= count;
    });
  }

  bool wait_for(event_kind kind, const sandbox& of, std::size_t count = 1) const {
    return wait([&](const job_event& x) { return x.kind == kind && x.sandbox == of.id(); }, count);
  }

private:
  struct told {
    std::mutex mutex;
    std::condition_variable more;
    std::vector<job_event> events;
  };

  std::shared_ptr<told> told_ = std::make_shared<told>();
  event_subscription reading_;
};

} // namespace dsec::test
