#include "sdk/cli/own_output.hpp"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <poll.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace dsec {

/// Between the loop and the thread that writes.
struct own_output::line {
  struct piece {
    std::string bytes;
    kj::Own<kj::PromiseFulfiller<int>> taken;
  };

  std::mutex mutex;
  std::condition_variable more;
  std::deque<piece> pieces;
  bool closed = false; ///< Written by the loop alone.

  // The loop's alone.
  int failed = 0;
  std::function<void()> on_failure;

  void write_to(int fd) {
    std::unique_lock lock{mutex};
    for (;;) {
      more.wait(lock, [this] { return closed || !pieces.empty(); });
      if (closed)
        return;
      auto next = std::move(pieces.front());
      pieces.pop_front();
      lock.unlock();
      next.taken->fulfill(write_all(fd, next.bytes.data(), next.bytes.size()));
      next.taken = nullptr;
      lock.lock();
    }
  }
};

own_output::own_output(int fd) : line_{std::make_shared<line>()}, dropped_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_dropped_ = kj::mv(pair.fulfiller);
  dropped_ = pair.promise.fork();
  std::thread{[fd, line = line_] {
    line->write_to(fd);
  }}.detach();
}

own_output::~own_output() {
  drop();
}

void own_output::drop() {
  line_->on_failure = nullptr;
  tell_dropped_->fulfill();
  std::scoped_lock lock{line_->mutex};
  line_->closed = true;
  line_->pieces.clear();
  line_->more.notify_all();
}

int own_output::failed() const {
  return line_->failed;
}

kj::Promise<void> own_output::write(std::string bytes) {
  bytes_ += bytes.size();
  if (line_->failed != 0 || bytes.empty() || line_->closed)
    return kj::READY_NOW;
  auto pair = kj::newPromiseAndCrossThreadFulfiller<int>();
  {
    std::scoped_lock lock{line_->mutex};
    line_->pieces.push_back({std::move(bytes), kj::mv(pair.fulfiller)});
    line_->more.notify_all();
  }
  auto taken = pair.promise.then([line = line_](int failed) {
    if (failed == 0 || line->failed != 0)
      return;
    line->failed = failed;
    if (line->on_failure)
      line->on_failure();
  });
  return taken.exclusiveJoin(dropped_.addBranch());
}

void own_output::watch(std::function<void()> on_failure) {
  line_->on_failure = std::move(on_failure);
}

int write_all(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const auto n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN) {
      // Somebody who shares it wants it so.
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (n < 0)
      return errno;
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
  return 0;
}

} // namespace dsec
