#pragma once

#include "backends/init/launch.hpp"

#include <kj/io.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dsec::init {

/// What the kernel counts for the processes of one command, its children included: not what it
/// counts for the sandbox. Numbers only grow; a caller compares two readings.
///
/// On cgroup v1 both numbers are exact: the kernel counts them in the group that the process is in,
/// and nowhere above it. On v2, `oom_kills` is exact (memory.events of the command's own group),
/// `forks_refused` is up to Linux 6.10; later ones count a refused fork only where the limit is,
/// and then the sandbox's number is all there is.
class exec_account {
public:
  /// Of the control groups in these directories, -1 where there is none. Does not keep them.
  exec_account(unsigned number, int memory, int pids, bool joined);

  unsigned number() const {
    return number_;
  }

  std::uint64_t oom_kills() const;     ///< Processes that were killed for memory.
  std::uint64_t forks_refused() const; ///< By the process limit.

  bool counts_memory() const {
    return oom_.get() >= 0;
  }

  bool counts_forks() const {
    return refusals_.get() >= 0;
  }

  /// Files that a process writes itself into to be counted here; -1: it is by its birth.
  int memory_tasks() const {
    return memory_tasks_;
  }

  int pids_tasks() const {
    return pids_tasks_;
  }

  unsigned users = 0; ///< Commands that are counted here, for `exec_accounts`.

private:
  unsigned number_;
  kj::AutoCloseFd oom_, refusals_, memory_tasks_, pids_tasks_;
};

/// The accounts of a sandbox on cgroup v1: number 0 are the sandbox's own groups, the others are
/// groups below them, made when several commands run at once and kept, since a removed memory
/// group lives on in the kernel until the last page that it was charged for is gone. On v2 commands
/// have accounts of their own and number 0, the sandbox's, is for what they do not count.
class exec_accounts {
public:
  explicit exec_accounts(const launch& given);

  /// One that nobody uses. With `accounts_max` in use, the one with the fewest users, whose numbers
  /// are then those of all of them.
  exec_account& acquire();

  static void release(exec_account& account) {
    --account.users;
  }

  /// `acquire` would give one that is shared.
  bool exhausted() const;

  /// Of the whole sandbox.
  std::uint64_t oom_kills() const;

  exec_account& whole() const {
    return *all_.front();
  }

private:
  std::unique_ptr<exec_account> make(unsigned number) const;

  int memory_v1_, pids_v1_;
  bool may_make_ = true;
  std::vector<std::unique_ptr<exec_account>> all_;
};

} // namespace dsec::init
