#pragma once

#include "bench/demo/event_loop.hpp"

#include <coroutine>
#include <utility>
#include <vector>

namespace dsec::demo {

/// `co_await gate.pass()` waits while the gate is closed. On the loop's thread only.
class gate {
public:
  explicit gate(event_loop& loop) : loop_{loop} {}

  void close() {
    closed_ = true;
  }

  void open() {
    closed_ = false;
    for (auto h : std::exchange(waiting_, {}))
      loop_.post([h] { h.resume(); });
  }

  auto pass() {
    struct awaiter {
      gate& self;

      bool await_ready() const {
        return !self.closed_;
      }

      void await_suspend(std::coroutine_handle<> h) {
        self.waiting_.push_back(h);
      }

      void await_resume() const {}
    };

    return awaiter{*this};
  }

private:
  event_loop& loop_;
  bool closed_ = false;
  std::vector<std::coroutine_handle<>> waiting_;
};

} // namespace dsec::demo
