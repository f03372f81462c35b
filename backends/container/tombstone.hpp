#pragma once

#include "backends/backend.hpp"

#include <filesystem>
#include <optional>

namespace dsec {

/// What dsec-init wrote to run/<id>.end when it ended its sandbox by itself: the name of the cause,
/// a newline, and for a person why. Nothing if there is no such file.
std::optional<sandbox_end>
read_tombstone(const std::filesystem::path& run_dir, const sandbox_id& id);

} // namespace dsec
