#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "schemas/init.capnp.h"

namespace dsec {

/// Moves whole trees through dsec-init as a stream of at most a few pieces under way. A caller that
/// drops what it was given to call (`next`, `ready`) without calling it has left: what was begun
/// inside ends. Loop only. The promises fail when the connection does.
kj::Promise<result<file_reply>> unpack(io_loop& loop, wire::Init::Client init, tree_write what);
kj::Promise<result<file_reply>> pack(io_loop& loop, wire::Init::Client init, tree_read what);

} // namespace dsec
