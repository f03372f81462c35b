#pragma once

#include "backends/container/io_loop.hpp"
#include "sdk/embed/future.hpp"

#include <memory>

namespace dsec {

/// The answer of another thread as a promise of this loop. Loop only.
template <class T>
kj::Promise<result<T>> await(io_loop& loop, const future<T>& answer) {
  std::function<void()> resolve;
  auto arrived = loop.ticket(resolve);
  answer.then([resolve = std::move(resolve)](const result<T>&) { resolve(); });
  // A loop never waits: should nobody owe the answer any more, there is none.
  return arrived.then([answer] {
    return answer.ready() ? answer.get()
                          : result<T>{error{errc::unavailable, "nobody owes this answer any more"}};
  });
}

} // namespace dsec
