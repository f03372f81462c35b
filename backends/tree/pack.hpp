#pragma once

#include "backends/tree/archive_io.hpp"
#include "backends/tree/extract.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace dsec {

/// What of a tree goes into an archive, and under which name.
struct pack_rules {
  /// Of the top in the archive; empty: its content alone stands at the archive's root.
  std::string top;
  /// Directories where another file system is mounted are left out and told.
  bool one_file_system = false;
};

/// Where `path` lies: the folder, and the name in it; "." for paths that end in a directory ("/",
/// "a/.", ".."), which have no name of their own.
std::pair<std::string, std::string> folder_and_name(const std::string& path);

/// Packs what `name` is in the open directory `folder`, with all below it, as a pax archive: owners
/// by number, modes, times, holes, hard and symbolic links, user.* attributes of files, byte-exact
/// names. No link is followed. Devices, FIFOs and sockets are left out, set-user-ID and
/// set-group-ID bits and other attributes left off, and told, as `extract_archive` does it. A file
/// that changes while it is read is told; never more than its size at the beginning is read, and of
/// one of more than 256 KiB that shrinks the rest is zeros. A file that says it has no bytes and
/// has some (/proc, /sys) is packed with what it contains, at most 32 MiB; above, it is left out
/// and told. What goes away meanwhile is left out, and told if it was seen. not_found: nothing is
/// there. invalid_argument: the top is a device, FIFO or socket. Blocks.
result<void> pack_tree(int folder, const std::string& name, const pack_rules& rules,
                       archive_target& to, std::string_view what, const on_refusal& refused,
                       tree_report& done);

} // namespace dsec
