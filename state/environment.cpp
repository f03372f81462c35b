#include "state/environment.hpp"

#include "state/printable.hpp"
#include "state/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace dsec {

namespace {

constexpr std::size_t layers_max = 200;
constexpr std::size_t env_bytes_max = 1ull << 20;

error invalid(std::string message) {
  return {errc::invalid_argument, "environment: " + std::move(message)};
}

result<void>
check_range(std::string_view field, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value < least || value > most)
    return invalid(fmt::format("limits.{} is {}; {} to {}", field, value, least, most));
  return {};
}

result<void> validate(const sandbox_limits& x) {
  if (auto ok = check_range("memory_bytes", x.memory_bytes, memory_bytes_min, memory_bytes_max);
      !ok)
    return ok;
  if (auto ok = check_range("processes", x.processes, processes_min, processes_max); !ok)
    return ok;
  if (x.cpu_milli != 0)
    if (auto ok = check_range("cpu_milli", x.cpu_milli, cpu_milli_min, cpu_milli_max); !ok)
      return ok;
  return check_range("disk_bytes", x.disk_bytes, disk_bytes_min, disk_bytes_max);
}

} // namespace

result<void> validate(const environment& x) {
  if (x.layers.empty() || x.layers.size() > layers_max)
    return invalid(fmt::format("layers has {} elements; 1 to {}", x.layers.size(), layers_max));
  for (std::size_t i = 0; i < x.layers.size(); ++i)
    if (auto ok = validate(x.layers[i]); !ok)
      return invalid(fmt::format("layers[{}]: {}", i, ok.error().message));
  for (std::size_t i = 0; i < x.layers.size(); ++i)
    if (auto first = std::ranges::find(x.layers, x.layers[i]) - x.layers.begin();
        first != static_cast<std::ptrdiff_t>(i))
      return invalid(
        fmt::format("layers[{}] is {}, which is layers[{}] already", i, x.layers[i], first));
  auto bytes = check_variables("environment", x.env);
  if (!bytes)
    return bytes.error();
  if (*bytes > env_bytes_max)
    return invalid(fmt::format("env has {} bytes; at most {}", *bytes, env_bytes_max));
  if (has_nul(x.user) || x.user.size() > 256)
    return invalid(fmt::format("user is {}; at most 256 bytes, without NUL", printable(x.user)));
  if (x.cwd.empty() || x.cwd[0] != '/' || has_nul(x.cwd) || x.cwd.size() > 4095)
    return invalid(
      fmt::format("cwd is {}; absolute, at most 4095 bytes, without NUL", printable(x.cwd)));
  return validate(x.limits);
}

} // namespace dsec
