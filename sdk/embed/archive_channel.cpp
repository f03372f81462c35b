#include "sdk/embed/archive_channel.hpp"

#include <utility>

namespace dsec {

namespace {

constexpr std::size_t pieces_max = 8;

} // namespace

void upward_channel::read(std::function<void(std::string)> next) {
  std::string bytes;
  {
    std::scoped_lock lock{mutex_};
    if (abandoned_)
      return;
    if (pieces_.empty() && !ended_) {
      next_ = std::move(next);
      return;
    }
    if (!pieces_.empty()) {
      bytes = std::move(pieces_.front());
      pieces_.pop_front();
      changed_.notify_all();
    }
  }
  next(std::move(bytes));
}

result<void> upward_channel::write(std::string_view bytes) {
  std::function<void(std::string)> next;
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return left_ || pieces_.size() < pieces_max; });
    if (left_)
      return error{errc::unavailable, "nobody reads the archive any more"};
    if (!next_) {
      pieces_.emplace_back(bytes);
      return {};
    }
    next = std::exchange(next_, nullptr);
  }
  next(std::string{bytes});
  return {};
}

void upward_channel::end() {
  std::function<void(std::string)> next;
  {
    std::scoped_lock lock{mutex_};
    ended_ = true;
    next = std::exchange(next_, nullptr);
  }
  if (next)
    next({});
}

void upward_channel::abandon() {
  std::function<void(std::string)> next;
  std::scoped_lock lock{mutex_};
  abandoned_ = true;
  next = std::exchange(next_, nullptr);
}

void upward_channel::leave() {
  std::scoped_lock lock{mutex_};
  left_ = true;
  changed_.notify_all();
}

void downward_channel::write(std::string bytes, std::function<void()> ready) {
  {
    std::scoped_lock lock{mutex_};
    if (abandoned_)
      return;
    pieces_.push_back(std::move(bytes));
    changed_.notify_all();
    if (pieces_.size() >= pieces_max) {
      ready_ = std::move(ready);
      return;
    }
  }
  ready();
}

result<std::string_view> downward_channel::read() {
  std::function<void()> ready;
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !pieces_.empty() || ended_ || failed_; });
    if (failed_)
      return *failed_;
    taken_.clear();
    if (!pieces_.empty()) {
      taken_ = std::move(pieces_.front());
      pieces_.pop_front();
    }
    ready = std::exchange(ready_, nullptr);
  }
  if (ready)
    ready();
  return std::string_view{taken_};
}

void downward_channel::end() {
  std::scoped_lock lock{mutex_};
  ended_ = true;
  changed_.notify_all();
}

void downward_channel::fail(error cause) {
  std::scoped_lock lock{mutex_};
  failed_ = std::move(cause);
  changed_.notify_all();
}

void downward_channel::abandon() {
  std::function<void()> ready;
  std::scoped_lock lock{mutex_};
  abandoned_ = true;
  pieces_.clear();
  ready = std::exchange(ready_, nullptr);
}

} // namespace dsec
