#pragma once

#include "backends/init/reaper_protocol.hpp"
#include "state/error.hpp"

#include <kj/async-unix.h>
#include <kj/io.h>

#include <functional>
#include <vector>

namespace dsec::init {

/// dsec-init's end of the socket to PID 1.
class reaper_link {
public:
  reaper_link(kj::UnixEventPort& port, kj::AutoCloseFd socket);

  /// The descriptors stay the caller's. unavailable when PID 1 does not read or is gone.
  result<void> spawn(const reaper::spawn_request& request, const std::vector<int>& descriptors);

  /// To the main process of an exec; a process that has ended is passed over.
  result<void> signal(std::uint64_t exec_id, int number);

  /// Calls `tell` for every event; ends when PID 1 has closed its end.
  kj::Promise<void> run(std::function<void(const reaper::event&)> tell);

private:
  result<void> send(const void* bytes, std::size_t size, const std::vector<int>& descriptors);

  kj::AutoCloseFd socket_;
  kj::UnixEventPort::FdObserver observer_;
};

} // namespace dsec::init
