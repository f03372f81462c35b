#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dsec::spawner {

/// What the command line says.
struct options {
  std::string data_dir = "/var/lib/dsec"; ///< Layers, scratch, swap.
  std::string run_dir = "/run/dsec";      ///< Sockets, locks, mount points, the log.
  std::string group;                      ///< Its members may use the socket, beside root.
  std::optional<std::uint64_t>
    swap_bytes; ///< 0: no swap. Absent: 8 GiB, at most 25% of the free disk.
  std::optional<std::uint64_t> scratch_bytes; ///< Absent: 64 GiB, at most 60% of the free disk.
  std::uint32_t blanks = 16; ///< Sandboxes built ahead as far as they do not depend on the request.
  std::uint32_t warm = 64;   ///< Network namespaces kept ready.
  std::uint32_t idle_exit_s = 0; ///< Ends after so long without connection and sandbox. 0: never.
  bool foreground = false;
  bool trace = false; ///< Logs how long every stage of a create took.
};

} // namespace dsec::spawner
