#pragma once

#include "backends/spawner/descriptor.hpp"
#include "state/error.hpp"

#include <string>
#include <vector>

namespace dsec::spawner {

/// A detached overlay: `lower` with the base first, `upper` and `work` below `scratch`. Devices of
/// the image do not open. Kernels from 6.15 on stack detached layers by descriptor
/// (fsconfig `lowerdir+`, Documentation/filesystems/overlayfs.rst). Before that a forked child
/// attaches them below `place`, an existing directory, in a mount namespace that ends with it:
/// `lower` is used up then.
result<descriptor>
overlay(const std::vector<descriptor>& lower, int scratch, const std::string& place);

} // namespace dsec::spawner
