#pragma once

#include "backends/spawner/names.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace dsec::spawner {

/// Turns the swap file on, or adopts it if it is on already; reclaim needs somewhere to put memory.
/// Returns its bytes; 0, with the reason in `why_not`, if there can be none.
std::uint64_t
start_swap(const names& where, std::optional<std::uint64_t> wanted_bytes, std::string& why_not);

/// Turns it off and removes the file.
void stop_swap(const names& where);

} // namespace dsec::spawner
