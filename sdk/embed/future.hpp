#pragma once

#include "state/error.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace dsec {

/// The answer to a request, some time. Copies share it. Any thread.
template <class T>
class future {
public:
  struct shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<result<T>> value;
    std::vector<std::function<void(const result<T>&)>> callbacks;
  };

  future() : shared_{std::make_shared<shared>()} {}

  /// Blocks until the answer is there.
  result<T> get() const {
    std::unique_lock lock{shared_->mutex};
    shared_->changed.wait(lock, [&] { return shared_->value.has_value(); });
    return *shared_->value;
  }

  bool ready() const {
    std::scoped_lock lock{shared_->mutex};
    return shared_->value.has_value();
  }

  /// Calls `callback` once: now if the answer is there, else on the runtime thread that brings it,
  /// after those that were given before.
  void then(std::function<void(const result<T>&)> callback) const {
    {
      std::scoped_lock lock{shared_->mutex};
      if (!shared_->value) {
        shared_->callbacks.push_back(std::move(callback));
        return;
      }
    }
    callback(*shared_->value);
  }

  /// For whoever owes the answer; the first one counts.
  void fulfill(result<T> value) const {
    std::vector<std::function<void(const result<T>&)>> callbacks;
    {
      std::scoped_lock lock{shared_->mutex};
      if (shared_->value)
        return;
      shared_->value = std::move(value);
      callbacks.swap(shared_->callbacks);
      shared_->changed.notify_all();
    }
    for (const auto& callback : callbacks)
      callback(*shared_->value);
  }

private:
  std::shared_ptr<shared> shared_;
};

} // namespace dsec
