#pragma once

#include "backends/container/io_loop.hpp"
#include "schemas/dsec.capnp.h"
#include "sdk/embed/runtime.hpp"

/// The capabilities that a client of the front holds. All of them only pass calls to the runtime.
/// Loop only.

namespace dsec {

wire::Dsec::Client serve_runtime(io_loop& loop, runtime& target);

wire::Job::Client serve_job(io_loop& loop, job target);

wire::Sandbox::Client serve_sandbox(io_loop& loop, sandbox target);

} // namespace dsec
