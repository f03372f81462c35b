#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace dsec {

/// A folder of its own for one test, removed at its end.
class temporary_folder {
public:
  temporary_folder() {
    auto name = (std::filesystem::temp_directory_path() / "dsec-test-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      std::abort();
    path_ = name;
  }

  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const {
    return path_;
  }

private:
  std::filesystem::path path_;
};

} // namespace dsec
