#pragma once

#include "state/error.hpp"
#include "state/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dsec {

/// The two files of a layer (docs/decisions/0002-layer-format.md): metadata, and the content of
/// files in chunks.
inline constexpr const char* layer_image_file = "layer.erofs";
inline constexpr const char* layer_blob_file = "layer.blob";

/// Writes both files into `folder`, durable, with the log of mkfs.erofs beside them on failure. The
/// same tree gives the same bytes whatever the machine, the time, inode numbers and the order of
/// directory entries. The root is 0755, owned by root, at time 0. `excluded`: paths relative to
/// `tree` that are left out. Blocks.
result<void> write_erofs_image(const std::filesystem::path& tree,
                               const std::filesystem::path& folder,
                               const std::vector<std::string>& excluded);

/// "sha256-" and the SHA-256 of both files' bytes, image first. Blocks.
result<layer_digest> digest_of_image(const std::filesystem::path& folder);

} // namespace dsec
