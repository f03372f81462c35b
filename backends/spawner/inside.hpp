#pragma once

#include "backends/spawner/descriptor.hpp"
#include "backends/spawner/wire.hpp"

namespace dsec::spawner {

/// What a failed step inside the new namespaces writes to its report descriptor, which closes by
/// itself when the reaper's program starts.
struct inside_failure {
  char stage[60];
  int number;
};

/// The half of a build that runs inside: from the clone to the exec of the reaper. It waits on
/// `socket` for two datagrams: the device tree once its ids are mapped, and the root once that is
/// mounted. Both are mounts that it moves into place.
[[noreturn]] void become_reaper(const create_order& order, int socket, int report, int program);

} // namespace dsec::spawner
