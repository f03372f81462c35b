#include "backends/container/io_loop.hpp"

#include <sys/eventfd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace dsec {

/// What other threads may touch. Outlives the loop, so that a late `post` finds a closed queue.
struct io_loop::queue {
  int bell = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::mutex mutex;
  std::vector<std::function<void()>> work;
  bool closed = false;

  ~queue() {
    ::close(bell);
  }

  void push(std::function<void()> fn) {
    {
      std::scoped_lock lock{mutex};
      if (closed)
        return;
      work.push_back(std::move(fn));
      // The bell rings once for a batch: whoever drains takes everything.
      if (work.size() > 1)
        return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] auto n = ::write(bell, &one, sizeof one);
  }
};

/// What lives in the thread.
struct io_loop::inside : kj::TaskSet::ErrorHandler {
  kj::AsyncIoContext io;
  kj::UnixEventPort::FdObserver bell;
  kj::Own<kj::TaskSet> tasks;
  std::unordered_map<std::uint64_t, kj::Own<kj::PromiseFulfiller<void>>> tickets;
  std::uint64_t last_ticket = 0;

  explicit inside(int bell_fd)
    : io{kj::setupAsyncIo()},
      bell{io.unixEventPort, bell_fd, kj::UnixEventPort::FdObserver::OBSERVE_READ},
      tasks{kj::heap<kj::TaskSet>(*this)} {}

  void taskFailed(kj::Exception&&) override {}
};

namespace {

/// Puts the host's handlers back after KJ has installed its own.
class kept_handlers {
public:
  kept_handlers() {
    for (std::size_t i = 0; i < std::size(numbers); ++i)
      ::sigaction(numbers[i], nullptr, &old_[i]);
  }

  ~kept_handlers() {
    for (std::size_t i = 0; i < std::size(numbers); ++i)
      ::sigaction(numbers[i], &old_[i], nullptr);
  }

private:
  static constexpr int numbers[] = {SIGUSR1, SIGPIPE};
  struct sigaction old_[std::size(numbers)];
};

} // namespace

io_loop::io_loop() : queue_{std::make_shared<queue>()} {
  std::promise<void> up;
  thread_ = std::thread{[this, &up] {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::pthread_setname_np(::pthread_self(), "dsec-io");
    {
      kept_handlers keep;
      inside_ = std::make_unique<inside>(queue_->bell);
    }
    up.set_value();
    serve();
    inside_->tasks = nullptr;
    inside_->tickets.clear();
    inside_.reset();
  }};
  up.get_future().wait();
}

io_loop::~io_loop() {
  {
    std::scoped_lock lock{queue_->mutex};
    queue_->closed = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] auto n = ::write(queue_->bell, &one, sizeof one);
  thread_.join();
}

void io_loop::serve() {
  for (;;) {
    std::uint64_t count;
    [[maybe_unused]] auto n = ::read(queue_->bell, &count, sizeof count);
    std::vector<std::function<void()>> batch;
    bool closed;
    {
      std::scoped_lock lock{queue_->mutex};
      batch.swap(queue_->work);
      closed = queue_->closed;
    }
    for (auto& fn : batch) {
      fn();
      fn = nullptr;
    }
    if (closed)
      return;
    inside_->bell.whenBecomesReadable().wait(inside_->io.waitScope);
  }
}

void io_loop::post(std::function<void()> work) const {
  queue_->push(std::move(work));
}

void io_loop::run(std::function<void()> work) const {
  if (in_loop())
    return work();
  std::promise<void> done;
  post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

bool io_loop::in_loop() const noexcept {
  return std::this_thread::get_id() == thread_.get_id();
}

kj::Promise<void> io_loop::ticket(std::function<void()>& resolve) {
  /// Resolves when called or when the last copy goes.
  struct voucher {
    std::weak_ptr<queue> target;
    inside* at;
    std::uint64_t number;
    std::atomic<bool> used{false};

    void use() {
      if (used.exchange(true))
        return;
      auto q = target.lock();
      if (!q)
        return;
      // `at` lives for as long as the queue runs what is pushed.
      q->push([at = at, number = number] {
        auto i = at->tickets.find(number);
        if (i == at->tickets.end())
          return;
        i->second->fulfill();
        at->tickets.erase(i);
      });
    }

    ~voucher() {
      use();
    }
  };

  auto pair = kj::newPromiseAndFulfiller<void>();
  auto number = ++inside_->last_ticket;
  inside_->tickets.emplace(number, kj::mv(pair.fulfiller));
  auto v = std::make_shared<voucher>();
  v->target = queue_;
  v->at = inside_.get();
  v->number = number;
  resolve = [v] {
    v->use();
  };
  return kj::mv(pair.promise);
}

kj::UnixEventPort& io_loop::port() noexcept {
  return inside_->io.unixEventPort;
}

kj::LowLevelAsyncIoProvider& io_loop::low_level() noexcept {
  return *inside_->io.lowLevelProvider;
}

kj::Network& io_loop::network() noexcept {
  return inside_->io.provider->getNetwork();
}

kj::Timer& io_loop::timer() noexcept {
  return inside_->io.provider->getTimer();
}

void io_loop::spawn(kj::Promise<void> work) {
  inside_->tasks->add(kj::mv(work));
}

} // namespace dsec
