#pragma once

#include "state/error.hpp"

#include <cstddef>
#include <string_view>

namespace dsec {

/// Where the bytes of an archive come from. May block.
class archive_source {
public:
  virtual ~archive_source() = default;

  /// The next bytes, good until the next call; empty at the end.
  virtual result<std::string_view> read() = 0;
};

/// Where the bytes of an archive go. May block.
class archive_target {
public:
  virtual ~archive_target() = default;
  virtual result<void> write(std::string_view bytes) = 0;
};

/// An open file or pipe, which stays the caller's.
class archive_file_source final : public archive_source {
public:
  explicit archive_file_source(int file) : file_{file} {}

  result<std::string_view> read() override;

private:
  int file_;
  char buffer_[1 << 18];
};

class archive_file_target final : public archive_target {
public:
  explicit archive_file_target(int file) : file_{file} {}

  result<void> write(std::string_view bytes) override;

private:
  int file_;
};

} // namespace dsec
