#pragma once

#include "backends/container/io_loop.hpp"
#include "schemas/dsec.capnp.h"
#include "sdk/embed/runtime.hpp"

#include <memory>

namespace dsec {

/// A job's events on their way to one client, as fast as it takes them. Loop only.
class event_stream {
public:
  event_stream(io_loop& loop, wire::EventListener::Client listener);

  /// Nothing is sent any more.
  ~event_stream();

  void begin(const job& from, std::uint64_t cursor);

  /// The client takes no more, or has all of a job that is over. Once.
  kj::Promise<void> gone();

private:
  struct link;

  std::shared_ptr<link> link_;
  event_subscription subscription_;
  kj::Promise<void> gone_ = nullptr;
};

} // namespace dsec
