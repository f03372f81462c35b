#pragma once

#include "state/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

/// Entries that a layer may not hold, gathered so that one error names them.
class refused_entries {
public:
  void add(std::string_view path, std::string_view reason);

  bool empty() const noexcept {
    return count_ == 0;
  }

  /// invalid_argument: "`what`: N entries refused: ...", the first 20 by name and reason.
  error to_error(std::string_view what) const;

private:
  std::uint64_t count_ = 0;
  std::vector<std::string> shown_;
};

struct tree_census {
  std::uint64_t files = 0; ///< Everything below the root, directories included.
  /// Devices in /dev, relative to the root: the sandbox has its own.
  std::vector<std::string> devices;
};

/// Walks `tree` without following links. invalid_argument with the list of refused entries if it
/// holds device nodes (elsewhere than in /dev), FIFOs, sockets, or overlayfs's own attributes,
/// which would reach out of the layer.
result<tree_census> take_census(const std::filesystem::path& tree);

/// True for a path of a device that is left out silently rather than refused.
bool is_in_dev(std::string_view relative_path);

} // namespace dsec
