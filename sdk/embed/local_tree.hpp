#pragma once

#include "backends/tree/archive_io.hpp"
#include "sdk/embed/copy_rule.hpp"
#include "state/file.hpp"

#include <filesystem>
#include <string>

namespace dsec {

/// A tree of this process's own file system, about to be copied.
struct local_source {
  std::string path;
  bool is_directory = false;
};

/// not_found: nothing is there. invalid_argument: it is a device, FIFO or socket.
result<local_source> find_local(const std::filesystem::path& from);

/// Packs it, with `top` as its name (`landing::top`). Blocks.
result<void>
pack_local(const local_source& from, const std::string& top, archive_target& to, tree_report& done);

/// Unpacks what `pack` gives of one path, where it lands. The directory is made if it is missing.
/// Blocks.
result<void> unpack_local(archive_source& from, const landing& at, tree_report& done);

/// One report of both sides. A single file that was refused is an error.
result<tree_report>
both(const std::string& what, bool is_directory, tree_report packed, tree_report unpacked);

} // namespace dsec
