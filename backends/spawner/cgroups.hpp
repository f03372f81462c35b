#pragma once

#include "backends/spawner/descriptor.hpp"
#include "state/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsec::spawner {

/// Where the hierarchies of this machine are mounted. A controller with an empty path belongs to
/// the unified one.
struct cgroup_layout {
  std::string unified;
  std::string memory;
  std::string pids;
  std::string cpu;

  bool pure_v2() const {
    return memory.empty() && pids.empty() && cpu.empty();
  }
};

/// Reads the layout from the text of /proc/self/mountinfo. unavailable without a unified hierarchy.
result<cgroup_layout> read_cgroup_layout(std::string_view mountinfo);

struct payload_limits {
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;
  std::uint32_t cpu_milli = 0; ///< 0: none.
};

/// Directories of a sandbox's payload groups; the v1 ones are absent on a pure v2 machine.
struct payload_groups {
  descriptor unified;
  descriptor memory;
  descriptor pids;
  descriptor cpu;
};

/// The groups of all sandboxes of this spawner. In the unified hierarchy <root>/_<slot> holds
/// dsec-init and the reaper and <root>/_<slot>/payload the agent's processes; on pure v2, where a
/// group with controllers below it may hold no process, the former stand in <root>/_<slot>/outer.
/// In the v1 hierarchies <root>/_<slot> carries the payload's limits.
class cgroups {
public:
  cgroups(cgroup_layout layout, std::string root);

  const cgroup_layout& layout() const {
    return layout_;
  }

  /// Makes the roots and lets their children have controllers.
  result<void> prepare() const;

  /// Moves the calling process into a group of its own, so that it outlives the session that
  /// started it.
  result<void> enter_own_group() const;

  /// Makes the group that dsec-init is cloned into. invalid_state if the sandbox has one already.
  result<descriptor> make_outer(std::uint32_t slot) const;

  /// `owner` is the uid that root inside has outside: PID 1 clones commands into groups below
  /// `payload`, which the kernel allows to whoever may write to cgroup.procs of the group above
  /// both. Nothing of the hierarchy is mounted inside.
  result<payload_groups> make_payload(std::uint32_t slot, uid_t owner) const;

  static result<void> limit(const payload_groups& groups, const payload_limits& limits);

  /// Kills every process of the sandbox. Nothing happens if it has no group.
  void kill(std::uint32_t slot) const;

  /// cgroup.events of the sandbox: EPOLLPRI when `populated` may have changed. Empty if it has no
  /// group.
  descriptor events(std::uint32_t slot) const;

  static bool populated(int events);

  /// Whether this process is dsec-init of the sandbox.
  bool holds(std::uint32_t slot, pid_t pid) const;

  /// Removes all groups of the sandbox, those that dsec-init made for its execs included. They are
  /// empty.
  result<void> remove(std::uint32_t slot) const;

  /// Slots that have a group in any hierarchy.
  std::vector<std::uint32_t> slots() const;

  /// Leaves the own group and removes the roots.
  result<void> remove_roots() const;

private:
  std::vector<std::string> roots() const;
  std::string unified_root() const;
  std::string group(std::uint32_t slot) const;
  std::string outer(std::uint32_t slot) const;

  cgroup_layout layout_;
  std::string root_;
};

} // namespace dsec::spawner
