#pragma once

#include "state/records.hpp"

namespace dsec {

/// Whether the sandbox never came to run, so that nothing was made under its idempotency key: the
/// next create with that key makes another one. Else the key is its own for as long as its record
/// is kept.
inline bool frees_key(const sandbox_record& x) {
  return x.cause == end_cause::start_failed;
}

} // namespace dsec
