#pragma once

#include "state/error.hpp"

#include <cstdint>
#include <filesystem>

namespace dsec {

/// Takes out of a freshly installed Debian tree what differs between two installations of the same
/// packages (logs, caches, identities, backups, the machine's package sources), and sets files
/// newer than `epoch` (seconds) back to it.
result<void> clean_base(const std::filesystem::path& tree, std::int64_t epoch);

} // namespace dsec
