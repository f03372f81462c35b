#pragma once

#include "backends/init/gate.hpp"
#include "schemas/init.capnp.h"

namespace dsec::init {

/// What a connection that was let in may ask.
wire::Init::Client make_init_server(sandbox& served, kj::Own<admission> admitted);

wire::Exec::Client make_exec_server(kj::Own<command> run, kj::Own<admission> admitted);

wire::File::Client make_file_server(file_errands& files, kj::AutoCloseFd file, bool directory,
                                    bool append, kj::Own<admission> admitted);

void fill_status(wire::FileStatus::Builder to, const file_reading& from);

} // namespace dsec::init
