#pragma once

#include "backends/backend.hpp"
#include "schemas/init.capnp.h"

namespace dsec {

/// Reads, writes, lists or describes one path through dsec-init, in pieces of 1 MiB. Loop only. The
/// promise fails when the connection does.
kj::Promise<result<file_reply>> transfer(wire::Init::Client init, file_request request);

} // namespace dsec
