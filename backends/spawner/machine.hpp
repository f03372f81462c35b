#pragma once

#include "backends/spawner/cgroups.hpp"
#include "backends/spawner/descriptor.hpp"
#include "backends/spawner/mounts.hpp"
#include "backends/spawner/names.hpp"
#include "backends/spawner/options.hpp"
#include "backends/spawner/scratch.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace dsec::spawner {

/// What there is once per machine (strictly: per run directory), and what every build uses.
struct machine {
  names where;
  cgroups groups;
  scratch disk;
  shared_mounts mounts;
  descriptor run_dir;
  descriptor lock;      ///< <run>/spawner.lock, flock'ed.
  descriptor host_name; ///< The machine's own UTS namespace.
  descriptor program;   ///< The reaper: sealed, not readable by anybody.
  std::uint64_t swap_bytes = 0;
  std::string swap_why_not = {}; ///< Why there is no swap, if there is none.
  bool trace = false;

  /// Makes or adopts everything. state_in_use with the pid if a spawner serves this run directory.
  static result<std::unique_ptr<machine>> open(const options& chosen);

  /// Removes everything that `open` made, but not the data directory's files: the scratch is used
  /// again.
  result<void> close();
};

} // namespace dsec::spawner
