#pragma once

#include <cstdint>

namespace dsec::init {

/// Reduces every capability set of the calling thread, the bounding set included, to `kept` (bit n
/// is capability n); the ambient set is cleared. Returns 0 or an errno value.
int keep_capabilities(std::uint64_t kept);

} // namespace dsec::init
