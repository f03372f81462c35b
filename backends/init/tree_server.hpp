#pragma once

#include "backends/init/gate.hpp"
#include "backends/init/replacement.hpp"
#include "schemas/init.capnp.h"

#include <string>

namespace dsec::init {

using unpack_context = capnp::CallContext<wire::Init::UnpackParams, wire::Init::UnpackResults>;
using pack_context = capnp::CallContext<wire::Init::PackParams, wire::Init::PackResults>;
using replace_context = capnp::CallContext<wire::Init::ReplaceParams, wire::Init::ReplaceResults>;

/// As schemas/init.capnp says. Paths are checked already.
void unpack_tree(sandbox& in, kj::Own<admission> admitted, std::string path,
                 unpack_context context);
kj::Promise<void> pack_tree(sandbox& in, std::string path, pack_context context);
kj::Promise<void> replace_file(sandbox& in, kj::Own<admission> admitted, file_request request,
                               replace_context context);

} // namespace dsec::init
