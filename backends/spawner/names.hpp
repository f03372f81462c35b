#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dsec::spawner {

inline constexpr std::uint32_t slots_max = 7000;
inline constexpr std::uint32_t ids_per_slot = 65536;

/// Every name that the spawner gives to something of the machine. Two spawners with different run
/// directories share none of them.
///
///     <run>/spawner.sock  spawner.lock  spawner.log
///     <run>/<id>.sock     where dsec-init listens
///     <run>/<id>.lock     flock'ed while the sandbox's dsec-init lives; holds slot, pid and phase
///     <run>/_<slot>.sock  _<slot>.lock  the same of a blank one, which is built ahead and has no
///     id yet <run>/<id>.end      tombstone of a sandbox that ended by itself <run>/layers/<digest>
///     <run>/scratch/_<slot>  <run>/dev <data>/store/<digest>/layer.{erofs,blob}
///     <data>/scratch.btrfs  <data>/swap <hierarchy>/<cgroup root>/_<slot>
class names {
public:
  /// Both absolute and canonical.
  names(std::string run_dir, std::string data_dir);

  const std::string& run_dir() const {
    return run_dir_;
  }

  const std::string& data_dir() const {
    return data_dir_;
  }

  std::string run(std::string_view name) const {
    return run_dir_ + '/' + std::string{name};
  }

  std::string data(std::string_view name) const {
    return data_dir_ + '/' + std::string{name};
  }

  /// "dsec", or "dsec-" and 8 hex digits for another run directory than /run/dsec.
  const std::string& cgroup_root() const {
    return cgroup_root_;
  }

  /// The host's id of root inside the sandbox that has this slot.
  uid_t base_id(std::uint32_t slot) const {
    return id_base_ + slot * ids_per_slot;
  }

private:
  std::string run_dir_;
  std::string data_dir_;
  std::string cgroup_root_;
  std::uint32_t id_base_;
};

/// [0-9a-z-]{1,40}, and not a name that the spawner itself uses.
bool valid_sandbox_id(std::string_view x);

/// "_" and the slot: names the groups, the subvolume and, before it has an id, the lock of the
/// sandbox that has this slot. No sandbox id looks like it.
std::string slot_name(std::uint32_t slot);

/// The slot that such a name stands for.
std::optional<std::uint32_t> slot_of(std::string_view name);

/// "sha256-" and 64 lower-case hex digits.
bool valid_digest(std::string_view x);

/// A caller's bytes made fit for a message: printable ASCII, at most 80 bytes.
std::string printable(std::string_view x);

} // namespace dsec::spawner
