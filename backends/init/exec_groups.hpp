#pragma once

#include "backends/init/exec_account.hpp"
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

  /// Where its command is counted, and what a process writes itself into for that.
  const exec_account& account() const {
    return own_account_ ? *own_account_ : *joined_;
  }

  /// SIGKILL to every process of the tree, frozen ones included.
  result<void> kill();

  bool killed() const {
    return killed_;
  }

  bool empty() const;

  /// Has urgent data whenever the last process has left, or a first one has come.
  int events() const {
    return events_;
  }

private:
  friend class exec_groups;

  unsigned number_;
  kj::AutoCloseFd directory_, kill_, events_;
  bool killed_ = false;
  std::unique_ptr<exec_account> own_account_; ///< On cgroup v2.
  exec_account* joined_ = nullptr;            ///< On v1; null while it waits for a command.
  bool idle_ = false;                         ///< It is known to be empty, and no command has it.
};

/// Hands out groups e0, e1, … below the payload's. A group is used again once its command has ended
/// and the last background child has left it, unless it was killed: Linux (6.18 was seen to)
/// kills whatever is cloned into a group whose cgroup.kill has ever been written to. Such a one is
/// removed when it is empty, the rest go with the payload's group itself.
class exec_groups {
public:
  explicit exec_groups(const launch& given);

  /// With an account that is its alone, if there are enough of them (`exec_accounts`), for as long
  /// as a process of its command lives.
  result<std::unique_ptr<exec_group>> acquire();
  void release(std::unique_ptr<exec_group> group);

  /// Processes of the sandbox that were ever killed for memory.
  std::uint64_t oom_kills() const {
    return accounts_.oom_kills();
  }

  /// Of the group's account; of the sandbox where the kernel has nothing finer.
  std::uint64_t oom_kills(const exec_group& group) const;
  std::uint64_t forks_refused(const exec_group& group) const;

private:
  result<std::unique_ptr<exec_group>> make();
  result<std::unique_ptr<exec_group>> with_account(std::unique_ptr<exec_group> group);
  static void leave_account(exec_group& group);
  void remove_killed();

  int payload_;
  bool unified_;
  exec_accounts accounts_;
  unsigned made_ = 0;
  std::deque<std::unique_ptr<exec_group>> released_;
  std::vector<std::unique_ptr<exec_group>> killed_;
};

} // namespace dsec::init
