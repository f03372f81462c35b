#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

enum class file_type : std::uint8_t { regular, directory, symlink, other };

std::string_view to_string(file_type x);

/// Owner ids are as seen inside the sandbox.
struct file_status {
  file_type type = file_type::other;
  std::uint32_t mode = 0; ///< Permission bits (07777).
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
};

/// `name` is byte-exact and may be any bytes but '/' and NUL.
struct directory_entry {
  std::string name;
  file_status status;
};

/// What moving a whole tree did.
struct tree_report {
  std::uint64_t entries = 0; ///< Moved.
  std::uint64_t bytes = 0;   ///< Of file contents.

  struct refusal {
    std::string path; ///< As the archive or the tree names it; byte-exact.
    std::string why;
  };

  /// What was left out, in order; the first `refusals_told_max` of `refused_total`.
  std::vector<refusal> refused;
  std::uint64_t refused_total = 0;
};

inline constexpr std::size_t refusals_told_max = 1000;

} // namespace dsec
