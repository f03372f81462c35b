#pragma once

#include "backends/tree/archive_io.hpp"
#include "state/file.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dsec {

/// What an archive may do below a directory.
struct extract_rules {
  enum class use {
    /// The archive is the root of a layer, in an empty directory: links lead to places inside,
    /// later entries replace earlier ones of whatever kind, owners and file capabilities are kept,
    /// devices in dev/ are left out silently, links that climb out are refused. Any failure ends
    /// it.
    layer,
    /// The archive joins a tree that others change meanwhile. No link is followed, wherever it
    /// leads. A file replaces a file or link; a directory joins a directory; else the entry is
    /// refused. Everything is owned by the caller's effective user and group; set-user-ID,
    /// set-group-ID, attributes of files other than user.*, and those of directories are left off
    /// and told. Only what stops everything (a full disk, a damaged archive) ends it.
    tree,
  };

  use what = use::tree;
  /// Takes the place of the first component of every name.
  std::optional<std::string> top;
  /// Whether the archive's root entry (".") says the attributes of the directory itself.
  bool set_root = false;
};

/// Hears of an entry, as the archive names it, that was left out, or of what was left off it.
using on_refusal = std::function<void(std::string_view path, std::string_view why)>;

/// Unpacks a tar archive (gzip, bzip2, xz, zstd, lz4 or plain) below the open directory `root`,
/// with modes, times, holes, links and byte-exact names. Never anything outside of `root`: absolute
/// names and names with "..", hard links to outside, devices, FIFOs and sockets are refused. Reads
/// `from` to its end. Whatever a file replaces stays until the new one is complete (draft.hpp), so
/// for that long the disk holds both; a file that could not be completed is removed. exhausted:
/// disk full. corrupt: damaged, or no tar. `what` begins every message. Blocks. `done` counts what
/// was unpacked, also when it fails.
result<void> extract_archive(archive_source& from, int root, const extract_rules& rules,
                             std::string_view what, const on_refusal& refused, tree_report& done);

} // namespace dsec
