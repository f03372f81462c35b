#pragma once

#include "state/reports.hpp"

#include <functional>
#include <mutex>
#include <vector>

namespace dsec {

/// Hands every change to every listener, in order. Any thread.
class change_stream {
public:
  void add(std::function<void(const sandbox_change&)> listener) {
    std::scoped_lock lock{mutex_};
    listeners_.push_back(std::move(listener));
  }

  void tell(const sandbox_change& change) {
    // A copy, so that a listener may subscribe another.
    std::vector<std::function<void(const sandbox_change&)>> all;
    {
      std::scoped_lock lock{mutex_};
      all = listeners_;
    }
    for (const auto& listener : all)
      listener(change);
  }

  void close() {
    std::scoped_lock lock{mutex_};
    listeners_.clear();
  }

private:
  std::mutex mutex_;
  std::vector<std::function<void(const sandbox_change&)>> listeners_;
};

} // namespace dsec
