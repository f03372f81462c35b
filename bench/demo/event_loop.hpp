#pragma once

#include "sdk/embed/future.hpp"

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <functional>
#include <map>
#include <mutex>

namespace dsec::demo {

/// Runs routines on one thread: the one that calls `run`. Everything a routine touches needs no
/// lock.
class event_loop {
public:
  using clock = std::chrono::steady_clock;

  /// Calls `work` on the loop's thread. Any thread.
  void post(std::function<void()> work);

  /// As `post`, not before `when`. Any thread.
  void post_at(clock::time_point when, std::function<void()> work);

  /// Works until `stop`.
  void run();

  /// Any thread.
  void stop();

  /// `co_await loop.sleep(d)`: goes on at least `d` later.
  auto sleep(std::chrono::milliseconds d) {
    struct awaiter {
      event_loop& loop;
      std::chrono::milliseconds duration;

      bool await_ready() const {
        return duration.count() <= 0;
      }

      void await_suspend(std::coroutine_handle<> h) {
        loop.post_at(clock::now() + duration, [h] { h.resume(); });
      }

      void await_resume() const {}
    };

    return awaiter{*this, d};
  }

  /// `co_await loop.answer(f)`: the result of `f`, once it is there.
  template <class T>
  auto answer(future<T> f) {
    struct awaiter {
      event_loop& loop;
      future<T> source;

      bool await_ready() const {
        return source.ready();
      }

      void await_suspend(std::coroutine_handle<> h) {
        source.then([&target = loop, h](const result<T>&) { target.post([h] { h.resume(); }); });
      }

      result<T> await_resume() const {
        return source.get();
      }
    };

    return awaiter{*this, std::move(f)};
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<clock::time_point, std::function<void()>> due_;
  bool stopped_ = false;
};

} // namespace dsec::demo
