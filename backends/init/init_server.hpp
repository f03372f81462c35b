#pragma once

#include "backends/init/gate.hpp"
#include "schemas/init.capnp.h"

namespace dsec::init {

/// What a connection that was let in may ask.
wire::Init::Client make_init_server(sandbox& served, kj::Own<admission> admitted);

wire::Exec::Client make_exec_server(kj::Own<command> run, kj::Own<admission> admitted);

wire::File::Client make_file_server(file_errands& files, kj::AutoCloseFd file, bool directory,
                                    bool append, kj::Own<admission> admitted);

using spawn_context = capnp::CallContext<wire::Init::SpawnParams, wire::Init::SpawnResults>;
using process_context = capnp::CallContext<wire::Init::ProcessParams, wire::Init::ProcessResults>;

/// As schemas/init.capnp says.
kj::Promise<void> spawn_process(sandbox& in, kj::Own<admission> admitted, spawn_context context);
void find_process(sandbox& in, kj::Own<admission> admitted, process_context context);

/// What a path met, an errno value, as an error.
error file_error(int number, const char* what, const std::string& path);

/// Writes `bytes`, at most 1 MiB, at `end`, which moves on.
result<void> append_to(int file, off_t& end, capnp::Data::Reader bytes);

void fill_status(wire::FileStatus::Builder to, const file_reading& from);

} // namespace dsec::init
