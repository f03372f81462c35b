#pragma once

#include "state/error.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace dsec::demo {

/// The upstream trees of Debian source packages, from the mirror that this machine's own apt uses,
/// through lists of our own below `directory`, so that nothing of the machine's configuration
/// changes.
class source_packages {
public:
  source_packages(std::filesystem::path directory, std::string suite);

  /// Unpacks the tree of `package` into `target`, which must not exist. The first call fetches the
  /// package index. not_found without a mirror, unavailable with what apt said.
  result<void> unpack(const std::string& package, const std::filesystem::path& target);

  /// What the programs that this runs have said.
  std::filesystem::path log() const {
    return directory_ / "log";
  }

private:
  result<void> refresh();
  result<void>
  apt_get(const std::filesystem::path& folder, std::vector<std::string> arguments) const;

  std::filesystem::path directory_;
  std::string suite_;
  bool fresh_ = false;
};

} // namespace dsec::demo
