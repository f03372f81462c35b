#pragma once

#include "backends/init/launch.hpp"
#include "backends/init/sandbox.hpp"
#include "state/error.hpp"

namespace dsec::init {

/// Takes from the calling process all that supervising a sandbox does not need: descriptors,
/// signals, capabilities, most of the file system, dangerous system calls. It stays uid 0 of the
/// host, which owns the control group files and the sandbox's user namespace.
result<void> lock_down(const launch& given, const privileged_files& files);

} // namespace dsec::init
