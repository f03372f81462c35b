#pragma once

#include "tests/scenarios/exec_rig.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace dsec::test {

/// What a reader of a process sees. With `stuck`, it takes its first piece and no other until it is
/// told to.
class watcher : public output_sink {
public:
  explicit watcher(bool stuck = false) : stuck_{stuck} {}

  void write(stream which, std::string bytes, std::function<void()> ready) override {
    {
      std::scoped_lock lock{mutex_};
      (which == stream::out ? out_ : err_) += bytes;
      more_.notify_all();
      if (stuck_) {
        waiting_.push_back(std::move(ready));
        return;
      }
    }
    ready();
  }

  void skipped(stream, std::uint64_t bytes) override {
    std::scoped_lock lock{mutex_};
    skipped_ += bytes;
    // Where it happened, for whoever looks at the text.
    skips_.push_back(out_.size());
  }

  void go_on() {
    std::vector<std::function<void()>> waiting;
    {
      std::scoped_lock lock{mutex_};
      stuck_ = false;
      waiting.swap(waiting_);
    }
    for (auto& ready : waiting)
      ready();
  }

  /// Until standard output, or the terminal, holds `text`, at most `patience`.
  bool sees(const std::string& text, std::chrono::milliseconds patience = 20s) {
    std::unique_lock lock{mutex_};
    return more_.wait_for(lock, patience, [&] { return out_.find(text) != std::string::npos; });
  }

  /// Until it was sent that much more than now.
  bool flows(std::size_t bytes) {
    std::unique_lock lock{mutex_};
    const auto enough = out_.size() + bytes;
    return more_.wait_for(lock, 20s, [&] { return out_.size() >= enough; });
  }

  std::string out() const {
    std::scoped_lock lock{mutex_};
    return out_;
  }

  std::string err() const {
    std::scoped_lock lock{mutex_};
    return err_;
  }

  std::uint64_t skipped_bytes() const {
    std::scoped_lock lock{mutex_};
    return skipped_;
  }

  std::vector<std::size_t> skips() const {
    std::scoped_lock lock{mutex_};
    return skips_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::string out_, err_;
  std::uint64_t skipped_ = 0;
  std::vector<std::size_t> skips_;
  bool stuck_;
  std::vector<std::function<void()>> waiting_;
};

inline process_spec background(std::string script, std::string name = {}) {
  process_spec x;
  x.name = std::move(name);
  x.command = exec_spec::shell(std::move(script));
  return x;
}

inline process_spec with_input(std::string script, std::string name = {}) {
  auto x = background(std::move(script), std::move(name));
  x.open_input = true;
  return x;
}

inline process_spec
session(std::vector<std::string> argv, std::string name = {}, terminal_size size = {}) {
  process_spec x;
  x.name = std::move(name);
  x.command.argv = std::move(argv);
  x.terminal = size;
  return x;
}

/// The error that an answer is.
template <class T>
error error_of(const future<T>& x) {
  auto got = x.get();
  BOOST_TEST_REQUIRE(!got, "no error was answered");
  return got.error();
}

inline std::string without_returns(std::string text) {
  std::erase(text, '\r');
  return text;
}

} // namespace dsec::test
