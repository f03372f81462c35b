#pragma once

#include "state/error.hpp"

#include <cstdint>
#include <string>

namespace dsec::init {

/// The epoch of the node that owns a sandbox, kept behind the first line of its lock file: written
/// by dsec-init as a node enters, read by the spawner before it lets a node of an older epoch
/// destroy the sandbox. So it holds over every restart of both.
result<void> note_owner(int lock, std::uint64_t epoch);

/// 0: nobody has entered, or there is no such sandbox.
std::uint64_t noted_owner(int run_dir, const std::string& sandbox_id);

} // namespace dsec::init
