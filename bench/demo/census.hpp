#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace dsec::demo {

/// What a machine holds of one dsec installation, counted from outside: from /proc, /sys and the
/// directories, never by asking dsec.
struct census {
  /// Things of single sandboxes, by kind: processes, cgroups, mounts, subvolumes, run files,
  /// namespaces. All are leaks once every sandbox has ended.
  std::map<std::string, std::set<std::string>> of_sandboxes;
  /// What stands between sandboxes: the spawner and its workers, pooled network namespaces, loop
  /// devices, swap files, mounts. The same before and after, except layers, which stay mounted once
  /// used.
  std::map<std::string, std::uint64_t> standing;

  std::uint64_t leaks() const;

  friend bool operator==(const census&, const census&) = default;
};

struct installation {
  std::filesystem::path run_dir;
  std::filesystem::path data_dir;
};

census take_census(const installation& where);

/// Takes the census until `good` or `patience` is over: pools refill and tear-downs end in the
/// background.
census settled_census(const installation& where, std::chrono::milliseconds patience,
                      const std::function<bool(const census&)>& good);

/// One line a difference between `before` and `after` that is a leak; empty: none.
std::set<std::string> leaked(const census& before, const census& after);

/// "kind n, kind n".
std::string describe(const census& x);

/// Sandbox id -> pid of its dsec-init, as its lock file says.
std::map<std::string, int> init_pids(const installation& where);

/// The spawner that serves `run_dir`; -1 if none runs.
int spawner_pid(const installation& where);

} // namespace dsec::demo
