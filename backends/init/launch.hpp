#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace dsec::init {

/// What the spawner hands to dsec-init when a sandbox is built. Every descriptor is close-on-exec
/// and owned by dsec-init from then on. Paths are only for messages.
struct launch {
  std::string sandbox_id;

  int listener = -1; ///< Listening SOCK_STREAM socket, run/<id>.sock.
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
  std::uint64_t disk_bytes = 0;
  std::uint64_t pause_after_ms = 0;
  std::uint64_t stop_after_ms = 0;
};

/// Locks the calling process down and supervises the sandbox until its reaper is gone or its lease
/// has expired. The process is single-threaded and has no event loop yet. Never returns.
[[noreturn]] void supervise(launch given);

/// The reaper's program (freestanding, static), embedded at build time.
struct program {
  const unsigned char* bytes;
  std::size_t size;
};

program reaper_program();

} // namespace dsec::init
