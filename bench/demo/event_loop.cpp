#include "bench/demo/event_loop.hpp"

#include <utility>

namespace dsec::demo {

void event_loop::post(std::function<void()> work) {
  post_at(clock::time_point{}, std::move(work));
}

void event_loop::post_at(clock::time_point when, std::function<void()> work) {
  std::scoped_lock lock{mutex_};
  due_.emplace(when, std::move(work));
  changed_.notify_one();
}

void event_loop::run() {
  std::unique_lock lock{mutex_};
  while (!stopped_) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    auto next = due_.begin()->first;
    if (next > clock::now()) {
      changed_.wait_until(lock, next);
      continue;
    }
    auto work = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    lock.unlock();
    work();
    lock.lock();
  }
}

void event_loop::stop() {
  std::scoped_lock lock{mutex_};
  stopped_ = true;
  changed_.notify_one();
}

} // namespace dsec::demo
