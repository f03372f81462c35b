#pragma once

#include "backends/spawner/machine.hpp"
#include "backends/spawner/wire.hpp"

#include <cstdint>

namespace dsec::spawner {

/// The one message of a build, on its report pipe: `code` 0 when dsec-init listens (text: how long
/// each stage took, if traced), else a dsec::errc and the message.
struct build_report {
  std::uint8_t code;
  char text[1023];
};

/// Builds the sandbox around the calling process, reports, and becomes its dsec-init. The process
/// has just been cloned into the sandbox's outer group; it takes over `network` (-1: it makes its
/// own) and `report`. What a failed build leaves is removed by the spawner.
[[noreturn]] void build_sandbox(const machine& on, const create_order& order, std::uint32_t slot,
                                int network, int report);

} // namespace dsec::spawner
