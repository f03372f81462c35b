#pragma once

#include "backends/backend.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace dsec {

/// Tells whether a tree that is being moved makes progress, and whose turn it is. Any thread.
class stream_watch {
public:
  /// True if a piece has moved since the last time, or the caller owes the next step: then the
  /// backend is not what is slow.
  bool alive() {
    auto moved = moved_.load();
    return std::exchange(seen_, moved) != moved || callers_turn_.load();
  }

  /// From now on the caller has left, as far as the backend sees.
  void cut() {
    cut_.store(true);
  }

  bool is_cut() const {
    return cut_.load();
  }

  void ask() {
    callers_turn_.store(true);
  }

  void answered() {
    callers_turn_.store(false);
    ++moved_;
  }

private:
  std::atomic<std::uint64_t> moved_{0};
  std::atomic<bool> callers_turn_{false};
  std::atomic<bool> cut_{false};
  std::uint64_t seen_ = 0; ///< The actor's.
};

/// `from`, watched.
class watched_source final : public input_source {
public:
  watched_source(std::shared_ptr<input_source> from, std::shared_ptr<stream_watch> watch)
    : from_{std::move(from)},
      watch_{std::move(watch)} {}

  void read(std::function<void(std::string)> next) override {
    if (watch_->is_cut())
      return;
    watch_->ask();
    from_->read([watch = watch_, next = std::move(next)](std::string bytes) {
      watch->answered();
      if (!watch->is_cut())
        next(std::move(bytes));
    });
  }

private:
  std::shared_ptr<input_source> from_;
  std::shared_ptr<stream_watch> watch_;
};

/// `to`, watched.
class watched_archive final : public archive_sink {
public:
  watched_archive(std::shared_ptr<archive_sink> to, std::shared_ptr<stream_watch> watch)
    : to_{std::move(to)},
      watch_{std::move(watch)} {}

  void write(std::string bytes, std::function<void()> ready) override {
    if (watch_->is_cut())
      return;
    watch_->ask();
    to_->write(std::move(bytes), [watch = watch_, ready = std::move(ready)] {
      watch->answered();
      if (!watch->is_cut())
        ready();
    });
  }

private:
  std::shared_ptr<archive_sink> to_;
  std::shared_ptr<stream_watch> watch_;
};

} // namespace dsec
