#pragma once

#include "backends/spawner/worker.hpp"

#include <cstddef>
#include <deque>
#include <optional>

namespace dsec::spawner {

/// Network namespaces made ahead by a worker: they cost a third of a sandbox's creation. They
/// belong to the host's user namespace, so that nothing inside a sandbox can change what they let
/// through, and each is used once. Loopback is up and unprivileged ports start at 0.
class network_pool {
public:
  /// Bounds what is kept ready, whatever is asked for: each holds a descriptor.
  static constexpr std::size_t size_max = 2048;

  explicit network_pool(std::size_t size);

  /// (Re)starts the worker, which keeps the instance lock `lock`.
  result<void> start(int lock);

  /// Asks the worker for what is missing. Nothing happens without a worker.
  void refill();

  /// Takes what the worker has made. False if the worker is gone.
  bool receive();

  /// One namespace; empty if none is ready.
  descriptor take();

  /// Has this many made, once, at most size_max.
  void raise(std::size_t count);

  bool full() const {
    return ready_.size() >= target_;
  }

  int socket() const {
    return worker_.socket.get();
  }

  pid_t pid() const {
    return worker_.pid;
  }

  /// Ends the worker and drops what is ready.
  void stop();

private:
  std::size_t size_;
  std::size_t target_;
  std::size_t asked_ = 0;
  std::deque<descriptor> ready_;
  worker worker_;
};

/// Moves the calling process into a new network namespace, set up as above. Returns 0 or an errno
/// value.
int enter_new_network();

} // namespace dsec::spawner
