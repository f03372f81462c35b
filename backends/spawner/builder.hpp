#pragma once

#include "backends/spawner/machine.hpp"
#include "backends/spawner/wire.hpp"

#include <cstdint>

namespace dsec::spawner {

/// What a sandbox's process tells the spawner: `code` 0 when it is blank and waits for its request
/// (beside it the namespace of its host name), and 0 again when dsec-init serves (text: how long
/// each stage took, if traced); else a dsec::errc and the message.
struct build_report {
  std::uint8_t code;
  char text[1023];
};

/// Builds a sandbox around the calling process. With `likely`, all of it, for a request that is
/// alike: dsec-init is locked down and waits for its assignment alone. Without (null), as far as no
/// request is needed. Then it tells the spawner, which names it (naming.hpp) and sends the request
/// on `spawner`, a SOCK_SEQPACKET socket; a request not alike `likely` must not come. The process
/// has just been cloned into the slot's outer group; it takes over `network` (-1: it makes its own)
/// and `spawner`. It ends if the spawner does before the request. What a failed build leaves is
/// removed by the spawner.
[[noreturn]] void build_sandbox(const machine& on, std::uint32_t slot, int network, int spawner,
                                const create_order* likely);

} // namespace dsec::spawner
