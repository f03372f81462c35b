#pragma once

#include "backends/spawner/descriptor.hpp"
#include "backends/spawner/names.hpp"
#include "state/error.hpp"

#include <string>
#include <vector>

namespace dsec::spawner {

/// The mounts of the machine that all sandboxes share: layers and the device tree. They stay when
/// the spawner dies and are adopted by the next one.
class shared_mounts {
public:
  shared_mounts() = default;

  /// Mounts the device tree unless it is there.
  static result<shared_mounts> open(const names& where);

  /// The mount of a layer, made on first use by whoever comes first; others wait for it. not_found
  /// if the store has no such layer, corrupt if it is no EROFS.
  result<descriptor> layer(const std::string& digest) const;

  int layers() const {
    return layers_.get();
  }

  int devices() const {
    return devices_.get();
  }

  /// Unmounts everything; the object is of no further use.
  result<void> unmount();

private:
  explicit shared_mounts(const names& where) : where_{&where} {}

  const names* where_ = nullptr;
  descriptor devices_;
  descriptor layers_;
};

/// A detached, read-only copy of a mount as the user namespace sees it.
result<descriptor> idmapped_copy(int mount, int user_namespace, const std::string& what);

/// The kernel's own words about a failed fsopen, which say more than errno.
error mount_error(int number, int context, const std::string& what);

} // namespace dsec::spawner
