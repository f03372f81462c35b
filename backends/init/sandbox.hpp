#pragma once

#include "backends/init/command_table.hpp"
#include "backends/init/counters.hpp"
#include "backends/init/exec_groups.hpp"
#include "backends/init/file_errands.hpp"
#include "backends/init/freezer.hpp"
#include "backends/init/launch.hpp"
#include "backends/init/lease.hpp"
#include "backends/init/reaper_link.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <string>

namespace dsec::init {

/// Descriptors that only a privileged process can open, for what happens after the lockdown.
struct privileged_files {
  kj::AutoCloseFd user_namespace, mount_namespace;
  kj::AutoCloseFd root;        ///< O_PATH of the sandbox's root, for the Landlock rule.
  kj::AutoCloseFd null_device; ///< Standard input of commands without one.
};

/// Everything dsec-init knows of its sandbox, and its end. Single-threaded: the event loop's.
class sandbox {
public:
  sandbox(launch given, privileged_files files, kj::AsyncIoContext& io);

  /// Before `run`. The lease counts from here.
  void become(assignment whose);

  /// Watches PID 1 and the lease. Answers when the sandbox is over and whoever waited has been
  /// told.
  kj::Promise<void> run();

  const std::string& id() const {
    return assigned_.sandbox_id;
  }

  launch given_;
  privileged_files privileged_;
  kj::UnixEventPort& port;
  kj::Timer& timer;
  counters counts;
  reaper_link reaper;
  exec_groups groups;
  file_errands files;
  command_table commands;
  freezer freeze;
  lease leases;

private:
  void hand_over_kept();
  void reaper_ended();
  void lease_expired();
  void end(wire::Outcome::Kind kind, const char* word, const std::string& detail);

  assignment assigned_;
  kj::UnixEventPort::FdObserver reaper_observer_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
  kj::Promise<void> over_promise_;
  kj::Promise<void> tasks_ = kj::READY_NOW;
  bool ending_ = false;
};

} // namespace dsec::init
