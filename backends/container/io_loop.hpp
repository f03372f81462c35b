#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <functional>
#include <memory>
#include <thread>

namespace dsec {

/// One thread with a KJ event loop: everything that speaks Cap'n Proto lives in it. Other threads
/// reach it through `post` alone, which carries plain closures, never KJ objects.
///
/// The thread blocks all signals. The host's handlers stay: what KJ installs when the first loop of
/// a process is made (SIGUSR1, and SIGPIPE ignored) is put back at once, because with epoll it is
/// not needed.
class io_loop {
public:
  io_loop();

  /// Runs what was posted before, then ends the thread. Whatever is posted later is dropped. KJ
  /// objects must be gone by then. Not from the loop's own thread.
  ~io_loop();

  io_loop(const io_loop&) = delete;
  io_loop& operator=(const io_loop&) = delete;

  /// Calls `work` in the loop's thread, in order. Any thread; never blocks.
  void post(std::function<void()> work) const;

  /// The same, and waits for it. From the loop's own thread it is a plain call.
  void run(std::function<void()> work) const;

  bool in_loop() const noexcept;

  /// A promise, and the function that resolves it from any thread. Dropping the function resolves
  /// it too, so that nobody waits for an answer that was lost. Loop only.
  kj::Promise<void> ticket(std::function<void()>& resolve);

  // Loop only.
  kj::UnixEventPort& port() noexcept;
  kj::LowLevelAsyncIoProvider& low_level() noexcept;
  kj::Network& network() noexcept;
  kj::Timer& timer() noexcept;

  /// Runs `work` until it is done or the loop ends. Failures are dropped: who cares for them
  /// catches them.
  void spawn(kj::Promise<void> work);

private:
  struct queue;
  struct inside;
  void serve();
  std::shared_ptr<queue> queue_;
  std::unique_ptr<inside> inside_;
  std::thread thread_;
};

} // namespace dsec
