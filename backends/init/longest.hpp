#pragma once

#include <cstdint>

namespace dsec::init {

/// A hundred years. Whatever is asked to take longer takes as long, so that no sum of it and a
/// clock, in whatever unit, can overflow into a time that has passed.
inline constexpr std::uint64_t longest_ms = 100ull * 365 * 24 * 3600 * 1000;

} // namespace dsec::init
