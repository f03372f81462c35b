#pragma once

namespace dsec::init {

/// Whether the sandbox's disk limit is reached now: a small unnamed file in `folder` cannot be
/// written. False if that cannot be told.
bool disk_is_full(int folder);

} // namespace dsec::init
