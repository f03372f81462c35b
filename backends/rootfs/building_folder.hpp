#pragma once

#include "backends/rootfs/file_descriptor.hpp"
#include "state/error.hpp"

#include <filesystem>

namespace dsec {

/// A folder ".building-<unique>" of a layer store, removed with all it holds unless it was renamed
/// away. Its lock tells an import under way from what a crash left.
class building_folder {
public:
  /// Makes one, and removes what crashed imports left. Creates `store`.
  static result<building_folder> make(const std::filesystem::path& store);

  building_folder(building_folder&&) noexcept = default;
  ~building_folder();

  const std::filesystem::path& path() const noexcept {
    return path_;
  }

private:
  building_folder(std::filesystem::path path, file_descriptor lock);

  std::filesystem::path path_;
  file_descriptor lock_;
};

/// Makes the entries of a folder durable.
result<void> sync_folder(const std::filesystem::path& folder);

} // namespace dsec
