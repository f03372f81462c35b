#include "sdk/embed/tree_workers.hpp"

#include <system_error>
#include <thread>

namespace dsec {

namespace {

constexpr unsigned threads_max = 8;

} // namespace

void tree_workers::run(work x) {
  {
    std::scoped_lock lock{mutex_};
    if (!closed_) {
      waiting_.push_back(std::move(x));
      if (threads_ == threads_max)
        return;
      try {
        std::thread{[this] {
          serve();
        }}.detach();
        ++threads_;
        return;
      } catch (const std::system_error&) {
        // Those that are there will do it, if there are any.
        if (threads_ > 0)
          return;
        x = std::move(waiting_.back());
        waiting_.pop_back();
      }
    }
  }
  x(true);
}

void tree_workers::serve() {
  std::unique_lock lock{mutex_};
  while (!waiting_.empty()) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next(false);
    next = nullptr;
    lock.lock();
  }
  --threads_;
  ended_.notify_all();
}

void tree_workers::close() {
  std::unique_lock lock{mutex_};
  closed_ = true;
  auto refused = std::move(waiting_);
  waiting_.clear();
  lock.unlock();
  for (auto& x : refused)
    x(true);
  lock.lock();
  ended_.wait(lock, [this] { return threads_ == 0; });
}

} // namespace dsec
