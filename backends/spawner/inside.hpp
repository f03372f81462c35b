#pragma once

#include "backends/spawner/descriptor.hpp"

#include <cstdint>

namespace dsec::spawner {

/// What a failed step inside the new namespaces writes to its report descriptor, which closes by
/// itself when the reaper's program starts.
struct inside_failure {
  char stage[60];
  int number;
};

/// What of a create the inside needs; comes beside the root.
struct inside_order {
  std::uint64_t memory_bytes;
  bool allow_setuid;
};

/// Text of the first datagram: whether the root follows soon or when the sandbox is asked for.
inline constexpr const char* root_comes_soon = "root soon";
inline constexpr const char* root_comes_late = "root late";

/// The half of a build that runs inside: from the clone to the exec of the reaper. It waits on
/// `socket` for two datagrams: the device tree once its ids are mapped, and an inside_order with
/// the root. Both descriptors are mounts that it moves into place.
[[noreturn]] void become_reaper(int socket, int report, int program);

} // namespace dsec::spawner
