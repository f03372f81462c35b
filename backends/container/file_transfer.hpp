#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "schemas/init.capnp.h"

namespace dsec {

/// Reads, writes, lists or describes one path through dsec-init, in pieces of 1 MiB, or moves a
/// tree (tree_transfer.hpp). Loop only. The promise fails when the connection does.
kj::Promise<result<file_reply>>
transfer(io_loop& loop, wire::Init::Client init, file_request request);

} // namespace dsec
