#pragma once

#include "backends/rootfs/layer_store.hpp"
#include "state/error.hpp"
#include "state/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dsec {

struct base_options {
  std::string suite;                ///< "bookworm".
  std::vector<std::string> include; ///< Packages beside the essential ones.
  std::filesystem::path log;        ///< Takes the builder's output; appended to.
  /// Files changed after this second since the epoch, by installing, are set back to it. Part of
  /// the digest.
  std::int64_t source_date_epoch = 1'700'000'000;
  /// Where apt's sources are read from.
  std::filesystem::path apt_folder = "/etc/apt";
};

/// A base layer of Debian: the essential packages and `include`, from the machine's own package
/// sources and proxies, without documentation, translations, logs, caches and anything of this
/// machine. The same package versions give the same digest. Uses mmdebstrap, or debootstrap when
/// that is absent; both need root. Takes a minute or two, blocks. invalid_argument for a malformed
/// suite or package; not_found without a package source; unavailable with the end of the log when
/// the builder fails.
result<layer_digest> build_base(layer_store& store, const base_options& options);

} // namespace dsec
