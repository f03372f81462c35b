#pragma once

#include "backends/init/command_table.hpp"
#include "backends/init/counters.hpp"
#include "backends/init/disk_probe.hpp"
#include "backends/init/exec_groups.hpp"
#include "backends/init/file_errands.hpp"
#include "backends/init/freezer.hpp"
#include "backends/init/launch.hpp"
#include "backends/init/lease.hpp"
#include "backends/init/life_clocks.hpp"
#include "backends/init/oom_log.hpp"
#include "backends/init/process_table.hpp"
#include "backends/init/reaper_link.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <functional>
#include <string>

namespace dsec::init {

/// Descriptors that only a privileged process can open, for what happens after the lockdown.
struct privileged_files {
  kj::AutoCloseFd user_namespace, mount_namespace;
  kj::AutoCloseFd root;         ///< O_PATH of the sandbox's root, for the Landlock rule.
  kj::AutoCloseFd null_device;  ///< Standard input of commands without one.
  kj::AutoCloseFd disk_account; ///< As open_disk_account; none where the disk is not counted.
  kj::AutoCloseFd kernel_log;   ///< Of `oom_log::open`.
};

/// Everything dsec-init knows of its sandbox, and its end. Single-threaded: the event loop's.
class sandbox {
public:
  sandbox(launch given, privileged_files files, kj::AsyncIoContext& io);

  /// Whether PID 1 has what every command needs of it. One that was not told can start none.
  const result<void>& complete() const {
    return kept_;
  }

  /// Before `run`. The lease and the clocks count from here.
  void become(assignment whose);

  /// Watches PID 1, the lease and the clocks. Answers when the sandbox is over and whoever waited
  /// has been told.
  kj::Promise<void> run();

  const std::string& id() const {
    return assigned_.sandbox_id;
  }

  /// It has ended, and those who wait are being told.
  bool ending() const {
    return ending_;
  }

  /// Says whether every answer has left this process. The gate's.
  std::function<bool()> all_sent = [] {
    return true;
  };

  launch given_;
  privileged_files privileged_;
  kj::UnixEventPort& port;
  kj::Timer& timer;
  counters counts;
  reaper_link reaper;
  exec_groups groups;
  oom_log memory_deaths;
  disk_probe disk;
  file_errands files;
  command_table commands;
  process_table processes;
  freezer freeze;
  lease leases;
  life_clocks clocks;

private:
  result<void> hand_over_kept();
  void reaper_ended();
  void lease_expired();
  void clock_passed(life_clocks::which clock);
  void end(wire::Outcome::Kind kind, const char* word, const std::string& detail);
  /// Until everybody has been told, or that moment.
  kj::Promise<void> until_told(kj::TimePoint last);

  assignment assigned_;
  result<void> kept_;
  kj::UnixEventPort::FdObserver reaper_observer_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
  kj::Promise<void> over_promise_;
  kj::Promise<void> tasks_ = kj::READY_NOW;
  bool ending_ = false;
};

} // namespace dsec::init
