#pragma once

#include "state/ids.hpp"

#include <filesystem>

namespace dsec {

/// A layer mounted for one test, attached nowhere.
class layer_view {
public:
  /// `store`: the store's folder.
  layer_view(const std::filesystem::path& store, const layer_digest& digest);

  layer_view(const layer_view&) = delete;
  layer_view& operator=(const layer_view&) = delete;

  ~layer_view();

  std::filesystem::path operator/(const std::filesystem::path& name) const;

private:
  int mount_ = -1;
};

} // namespace dsec
