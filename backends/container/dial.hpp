#pragma once

#include "backends/container/io_loop.hpp"
#include "state/error.hpp"

#include <kj/async-io.h>

#include <filesystem>

namespace dsec {

/// Connects to the dsec-init that listens on `path`, and waits while its queue is full. not_found
/// if nothing listens there. Loop only.
kj::Promise<result<kj::Own<kj::AsyncIoStream>>> dial(io_loop& loop, std::filesystem::path path);

} // namespace dsec
