#pragma once

#include "backends/spawner/machine.hpp"
#include "backends/spawner/wire.hpp"

#include <cstdint>

namespace dsec::spawner {

/// Gives what a blank sandbox has under its slot's name the id of `order`, and the namespace
/// `host_name` the order's host name. A tombstone of an earlier sandbox of this id goes. Called in
/// the spawner, whose one thread enters the namespace for a moment.
result<void>
name_sandbox(const machine& on, std::uint32_t slot, int host_name, const create_order& order);

} // namespace dsec::spawner
