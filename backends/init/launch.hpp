#pragma once

#include "state/error.hpp"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dsec::init {

/// What the spawner hands to dsec-init when a sandbox is built. Every descriptor is close-on-exec
/// and owned by dsec-init from then on.
struct launch {
  int listener = -1; ///< Listening SOCK_STREAM socket, run/<id>.sock once the sandbox has its id.
  int reaper_socket =
    -1; ///< SOCK_SEQPACKET to PID 1 of the sandbox (backends/init/reaper_protocol.hpp).
  int reaper_pidfd = -1;
  pid_t reaper_pid = -1; ///< In dsec-init's pid namespace; dsec-init is its parent.
  int lock =
    -1; ///< run/<id>.lock, flock'ed: whoever can take it knows that this dsec-init is gone.
  int run_dir = -1;     ///< Directory of run/; the tombstone run/<id>.end is written here.
  int scratch_dir = -1; ///< The sandbox's own subvolume on the scratch; for the disk-full probe.

  /// The payload's groups. `payload_v2` is a directory of the unified hierarchy: cgroup.freeze,
  /// cgroup.events, cgroup.kill, and the parent of one child group per exec. The others are
  /// directories of the v1 hierarchies, or -1 on a pure v2 machine, where `payload_v2` has all
  /// controllers.
  int payload_v2 = -1;
  int memory_v1 = -1;
  int pids_v1 = -1;
  int cpu_v1 = -1;

  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;
  std::uint32_t cpu_milli = 0; ///< 1000 = one core; 0 = no limit.
  std::uint64_t disk_bytes = 0;

  /// What `assigning` needs: open until it has returned.
  std::vector<int> for_assigning;
};

/// What makes a sandbox somebody's.
struct assignment {
  std::string sandbox_id;
  std::uint64_t pause_after_ms = 0;
  std::uint64_t stop_after_ms = 0;
  /// Totals of the clocks that end it (backends/init/life_clocks.hpp); 0: that one does not run.
  std::uint64_t time_to_live_ms = 0;
  std::uint64_t rollout_budget_ms = 0;
  std::uint64_t age_ms = 0; ///< How long ago it was created.
};

/// Called once: with no error when the sandbox is complete but for its assignment, which is waited
/// for here, in the locked-down process, for as long as the sandbox is blank; else with why it
/// could not be completed: the process ends after that.
using assigning = std::function<assignment(const result<void>& complete)>;

/// Locks the calling process down and supervises the sandbox until its reaper is gone, its lease
/// has expired, or one of its clocks has passed. The process is single-threaded and has no event
/// loop yet. Never returns.
[[noreturn]] void supervise(launch given, const assigning& wait_for_assignment);

/// The reaper's program (freestanding, static), embedded at build time.
struct program {
  const unsigned char* bytes;
  std::size_t size;
};

program reaper_program();

} // namespace dsec::init
