#pragma once

#include "state/error.hpp"
#include "state/ids.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dsec {

inline constexpr std::uint64_t memory_bytes_min = 8ull << 20;
inline constexpr std::uint64_t memory_bytes_max = 1ull << 50; ///< So that sums cannot overflow.
inline constexpr std::uint32_t processes_min = 4;
inline constexpr std::uint32_t processes_max = 30'000;
inline constexpr std::uint32_t cpu_milli_min = 10; ///< The smallest quota the kernel takes.
inline constexpr std::uint32_t cpu_milli_max = 4'096'000;
inline constexpr std::uint64_t disk_bytes_min = 1ull << 20;
inline constexpr std::uint64_t disk_bytes_max = 1ull << 50;

/// Hard limits of one sandbox, enforced by the kernel. Each within the bounds above.
struct sandbox_limits {
  std::uint64_t memory_bytes = 512ull << 20; ///< Swap counted.
  std::uint32_t processes = 512;             ///< Tasks.
  std::uint32_t cpu_milli = 0;               ///< 1000 = one core; 0 = as much as there is.
  std::uint64_t disk_bytes = 1ull << 30;     ///< Written on top of the image.

  friend bool operator==(const sandbox_limits&, const sandbox_limits&) = default;
};

/// What a sandbox starts from: layers, base first, and the defaults of its commands.
struct environment {
  std::vector<layer_digest> layers; ///< 1 to 200, each once.
  std::vector<std::pair<std::string, std::string>> env;
  std::string user;      ///< As `exec_spec::user`. Empty: root.
  std::string cwd = "/"; ///< Absolute.
  sandbox_limits limits;
  /// Lets setuid programs (sudo) gain rights inside the sandbox: no_new_privs stays off.
  bool allow_setuid = false;

  friend bool operator==(const environment&, const environment&) = default;
};

/// invalid_argument with field, value and limit, or nothing.
result<void> validate(const environment& x);

} // namespace dsec
