#pragma once

#include "state/error.hpp"

#include <kj/io.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace dsec::init {

/// A child group of the payload in the unified hierarchy, for one command's process tree.
class exec_group {
public:
  exec_group(unsigned number, kj::AutoCloseFd directory, kj::AutoCloseFd kill,
             kj::AutoCloseFd events)
    : number_{number},
      directory_{kj::mv(directory)},
      kill_{kj::mv(kill)},
      events_{kj::mv(events)} {}

  /// For PID 1 to clone into.
  int directory() const {
    return directory_;
  }

  /// Never that of another group of this sandbox, as its descriptor may be.
  unsigned number() const {
    return number_;
  }

  std::string name() const {
    return "e" + std::to_string(number_);
  }

  /// SIGKILL to every process of the tree, frozen ones included.
  result<void> kill();

  bool killed() const {
    return killed_;
  }

  bool empty() const;

private:
  unsigned number_;
  kj::AutoCloseFd directory_, kill_, events_;
  bool killed_ = false;
};

/// Hands out groups e0, e1, … below the payload's. A group is used again once its command has ended
/// and the last background child has left it, unless it was killed: Linux (6.18 was seen to)
/// kills whatever is cloned into a group whose cgroup.kill has ever been written to. Such a one is
/// removed when it is empty, the rest go with the payload's group itself.
class exec_groups {
public:
  explicit exec_groups(int payload) : payload_{payload} {}

  result<std::unique_ptr<exec_group>> acquire();
  void release(std::unique_ptr<exec_group> group);

private:
  void remove_killed();

  int payload_;
  unsigned made_ = 0;
  std::deque<std::unique_ptr<exec_group>> released_;
  std::vector<std::unique_ptr<exec_group>> killed_;
};

} // namespace dsec::init
