#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace dsec::demo {

/// What a coroutine returns to the coroutine that awaits it. Starts when awaited, on the same
/// thread. An exception ends the program: nothing here throws on purpose.
template <class T>
class [[nodiscard]] routine {
public:
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> awaiting;

    routine get_return_object() {
      return routine{std::coroutine_handle<promise_type>::from_promise(*this)};
    }

    std::suspend_always initial_suspend() noexcept {
      return {};
    }

    auto final_suspend() noexcept {
      struct back {
        bool await_ready() noexcept {
          return false;
        }

        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
          return h.promise().awaiting;
        }

        void await_resume() noexcept {}
      };

      return back{};
    }

    void return_value(T x) {
      value = std::move(x);
    }

    void unhandled_exception() {
      std::terminate();
    }
  };

  explicit routine(std::coroutine_handle<promise_type> handle) : handle_{handle} {}

  routine(routine&& other) noexcept : handle_{std::exchange(other.handle_, nullptr)} {}

  routine& operator=(routine&&) = delete;

  ~routine() {
    if (handle_)
      handle_.destroy();
  }

  bool await_ready() const {
    return false;
  }

  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }

  T await_resume() {
    return std::move(*handle_.promise().value);
  }

private:
  std::coroutine_handle<promise_type> handle_;
};

/// A coroutine that nobody awaits. Starts at once and frees itself at its end.
struct detached_routine {
  struct promise_type {
    detached_routine get_return_object() {
      return {};
    }

    std::suspend_never initial_suspend() noexcept {
      return {};
    }

    std::suspend_never final_suspend() noexcept {
      return {};
    }

    void return_void() {}

    void unhandled_exception() {
      std::terminate();
    }
  };
};

} // namespace dsec::demo
