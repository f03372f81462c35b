#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace dsec::bench {

/// What the driver knows and the node process must judge by: a file of lines
///
///     acked <sandbox> <step>      acknowledged in an earlier life
///     killed <sandbox>            its dsec-init was killed
///     spawner                     the spawner was killed: starts may have failed
struct soak_notices {
  std::map<std::string, std::set<std::uint64_t>> acked;
  std::set<std::string> killed;
  bool spawner = false;

  static soak_notices read(const std::filesystem::path& file);
  void write(const std::filesystem::path& file) const;
};

} // namespace dsec::bench
