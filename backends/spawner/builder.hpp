#pragma once

#include "backends/spawner/machine.hpp"
#include "backends/spawner/wire.hpp"

#include <cstdint>

namespace dsec::spawner {

/// What a sandbox's process tells the spawner: `code` 0 when it is blank and waits for its request,
/// and 0 again when dsec-init listens (text: how long each stage took, if traced); else a
/// dsec::errc and the message.
struct build_report {
  std::uint8_t code;
  char text[1023];
};

/// Builds a sandbox around the calling process: first as far as no request is needed, or as far as
/// one like `likely` (if any) needs it; then, when the request that it is for comes as a datagram
/// on `spawner`, the rest; then it becomes its dsec-init. A request not alike `likely` must not
/// come. The process has just been cloned into the slot's outer group; it takes over `network`
/// (-1: it makes its own) and `spawner`, a SOCK_SEQPACKET socket. It ends if the spawner does
/// before the request. What a failed build leaves is removed by the spawner.
[[noreturn]] void build_sandbox(const machine& on, std::uint32_t slot, int network, int spawner,
                                const create_order* likely);

} // namespace dsec::spawner
