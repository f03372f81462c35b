#pragma once

#include "backends/spawner/descriptor.hpp"
#include "backends/spawner/names.hpp"
#include "state/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsec::spawner {

/// The btrfs that holds what sandboxes write: one subvolume each, limited by a simple quota. A
/// sparse file on a loop device that goes with its last mount.
class scratch {
public:
  /// Mounts it, or adopts it when it is mounted already. A file that is no btrfs any more is made
  /// anew: nothing in it outlives a boot. unavailable if this kernel lacks btrfs or simple quotas.
  static result<scratch> open(const names& where, std::optional<std::uint64_t> size_bytes);

  /// A subvolume with empty directories upper/ and work/ that belong to `owner`; returns its
  /// directory. exhausted when the filesystem is full.
  result<descriptor> make(std::uint32_t slot, uid_t owner) const;

  /// Limits what a subvolume, given by its directory, may hold.
  static result<void> limit(int subvolume, std::uint64_t bytes);

  /// Removes a subvolume; nothing uses it any more. Fine if there is none.
  result<void> remove(std::uint32_t slot) const;

  std::vector<std::uint32_t> slots() const;

  int directory() const {
    return directory_.get();
  }

  /// Unmounts it; the object is of no further use.
  result<void> unmount();

private:
  scratch(std::string path, descriptor directory)
    : path_{std::move(path)},
      directory_{std::move(directory)} {}

  std::string path_;
  descriptor directory_;
};

/// Free bytes of the filesystem at `path`, for unprivileged use.
std::uint64_t free_bytes(const std::string& path);

/// Whether something is mounted exactly at `path`, relative to `directory`.
bool is_mount_point(int directory, const std::string& path);

} // namespace dsec::spawner
