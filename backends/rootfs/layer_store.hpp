#pragma once

#include "state/error.hpp"
#include "state/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

struct layer_info {
  layer_digest digest;
  std::uint64_t size_bytes = 0; ///< Of both files.
  std::uint64_t files = 0;      ///< Entries of the tree, folders included.
  std::string created_from;     ///< For a person.
  std::vector<std::string> names;
};

/// The layers of a machine, by content:
///
///   <directory>/<digest>/layer.erofs   metadata       docs/decisions/0002-layer-format.md
///   <directory>/<digest>/layer.blob    file contents
///   <directory>/<digest>/layer.json    size, files, where it came from
///   <directory>/refs/<name>            a digest
///   <directory>/.building-*            an import under way, or what a crash left of one
///
/// A layer is whole or absent: it is built aside, made durable, and renamed. Any number of
/// processes may use one directory at once; every method blocks and may be called from any thread.
/// Owners are stored as the ids of the tree, counted from 0; importing needs root, or owners and
/// special modes are lost.
class layer_store {
public:
  /// `directory` is created, with its parents, by the first import.
  explicit layer_store(std::filesystem::path directory);

  /// The tree below `tree` as one layer; the same tree always has the same digest. invalid_argument
  /// with the list of refused entries (device nodes, FIFOs, sockets; devices in /dev are left out).
  /// unavailable without mkfs.erofs, exhausted when the disk is full.
  result<layer_digest>
  import_directory(const std::filesystem::path& tree, std::string created_from = {});

  /// The same for a tar archive, compressed or not: see `extract_tar` for what is refused.
  result<layer_digest> import_tar(const std::filesystem::path& archive);
  result<layer_digest> import_tar(int archive, std::string created_from);

  /// The same for a tree that `fill` makes in the empty folder that it is given.
  result<layer_digest>
  import_made(std::string created_from,
              const std::function<result<void>(const std::filesystem::path& tree)>& fill);

  /// Lets `name` ([A-Za-z0-9._:+-]{1,64}, no digest, no dot first) stand for a layer, whatever it
  /// stood for before.
  result<void> name(std::string_view name, const layer_digest& digest);

  /// Sorted by digest.
  result<std::vector<layer_info>> list() const;

  /// A name, a digest, or the first 6 or more digits of one ("sha256-" may be left out). not_found
  /// if there is no such layer, invalid_argument if several begin like that.
  result<layer_digest> resolve(std::string_view name_or_prefix) const;

  /// Drops a layer and its names. Sandboxes that have it mounted keep it. not_found if there is
  /// none.
  result<void> remove(const layer_digest& digest);

  /// not_found, or corrupt if its bytes are not those of the digest.
  result<void> verify(const layer_digest& digest) const;

private:
  result<layer_digest> publish(const std::filesystem::path& building,
                               const std::filesystem::path& tree, std::string created_from);

  std::filesystem::path directory_;
};

} // namespace dsec
