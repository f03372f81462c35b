#pragma once

#include "state/error.hpp"

#include <filesystem>
#include <string_view>

namespace dsec {

/// Unpacks a tar archive (gzip, bzip2, xz, zstd, lz4 or plain) from an open file into the empty
/// folder `root`, with owners, modes, times, and the attributes user.* and security.capability.
/// Every path is resolved beneath `root`, links included. invalid_argument with the list of refused
/// entries if any has an absolute name or "..", is a link out of the tree or to nothing, or is a
/// device (elsewhere than in /dev), FIFO or socket; no refused entry is ever written. The same with
/// the first entry that no tree can hold: a file below a file, a name too long. corrupt if the
/// archive is damaged or no tar. `what` begins every message. Blocks.
result<void> extract_tar(int archive, const std::filesystem::path& root, std::string_view what);

} // namespace dsec
