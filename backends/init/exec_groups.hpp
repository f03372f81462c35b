#pragma once

#include "state/error.hpp"

#include <kj/io.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace dsec::init {

/// A child group of the payload in the unified hierarchy, for one command's process tree.
class exec_group {
public:
  exec_group(kj::AutoCloseFd directory, kj::AutoCloseFd kill, kj::AutoCloseFd events)
    : directory_{kj::mv(directory)},
      kill_{kj::mv(kill)},
      events_{kj::mv(events)} {}

  /// For PID 1 to clone into.
  int directory() const {
    return directory_;
  }

  /// SIGKILL to every process of the tree, frozen ones included.
  result<void> kill() const;

  bool empty() const;

private:
  kj::AutoCloseFd directory_, kill_, events_;
};

/// Hands out groups e0, e1, … below the payload's. A group is used again once its command has ended
/// and the last background child has left it. They go with the payload's group itself.
class exec_groups {
public:
  explicit exec_groups(int payload) : payload_{payload} {}

  result<std::unique_ptr<exec_group>> acquire();
  void release(std::unique_ptr<exec_group> group);

private:
  int payload_;
  unsigned made_ = 0;
  std::deque<std::unique_ptr<exec_group>> released_;
};

} // namespace dsec::init
