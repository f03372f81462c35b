#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "schemas/dsec.capnp.h"
#include "sdk/embed/runtime.hpp"

/// Trees between a client of the front and the runtime. A client that goes away leaves nothing
/// running. Loop only.

namespace dsec {

using unpack_context =
  capnp::CallContext<wire::Sandbox::UnpackParams, wire::Sandbox::UnpackResults>;
using pack_context = capnp::CallContext<wire::Sandbox::PackParams, wire::Sandbox::PackResults>;

void serve_unpack(io_loop& loop, const sandbox& target, unpack_context context);
kj::Promise<void> serve_pack(io_loop& loop, const sandbox& target, pack_context context);

} // namespace dsec
