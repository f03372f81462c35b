#pragma once

#include "backends/container/io_loop.hpp"
#include "schemas/dsec.capnp.h"
#include "sdk/embed/runtime.hpp"

/// The part of the front that is about processes: what `Sandbox` answers of them, and their
/// handles. Loop only.

namespace dsec {

using spawn_call = capnp::CallContext<wire::Sandbox::SpawnParams, wire::Sandbox::SpawnResults>;
using processes_call =
  capnp::CallContext<wire::Sandbox::ProcessesParams, wire::Sandbox::ProcessesResults>;
using process_call =
  capnp::CallContext<wire::Sandbox::ProcessParams, wire::Sandbox::ProcessResults>;

/// As schemas/dsec.capnp says.
kj::Promise<void> spawn_process(io_loop& loop, const sandbox& in, spawn_call context);
kj::Promise<void> list_processes(io_loop& loop, const sandbox& in, processes_call context);
kj::Promise<void> find_process(io_loop& loop, const sandbox& in, process_call context);

} // namespace dsec
