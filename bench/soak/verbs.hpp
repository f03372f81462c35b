#pragma once

#include "bench/soak/told.hpp"
#include "sdk/embed/runtime.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace dsec::bench {

/// A sandbox under use, by one thread at a time.
struct soak_box {
  sandbox box;
  std::uint64_t next_step = 1;
};

/// What came of a verb when it was not what it must be; empty: all is well. A verb that a killed
/// dsec-init cut short says so here, too: whoever asked looks whether the sandbox has ended.
using complaint = std::optional<std::string>;

/// One verb, drawn at random, with the answer that it must have.
complaint use(soak_box& at, std::mt19937_64& random, told& to);

} // namespace dsec::bench
