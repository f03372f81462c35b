#include "backends/rootfs/archive_paths.hpp"

#include <algorithm>

namespace dsec {

std::optional<std::string> archive_path(std::string_view name) {
  if (name.starts_with('/'))
    return std::nullopt;
  std::string out;
  for (std::size_t at = 0; at <= name.size();) {
    auto end = std::min(name.find('/', at), name.size());
    auto part = name.substr(at, end - at);
    if (part == "..")
      return std::nullopt;
    if (!part.empty() && part != ".")
      out += (out.empty() ? "" : "/") + std::string{part};
    at = end + 1;
  }
  return out;
}

bool climbs_out(std::string_view name, std::string_view target) {
  if (target.starts_with('/'))
    return false;
  auto depth = std::count(name.begin(), name.end(), '/');
  for (std::size_t at = 0; at <= target.size();) {
    auto end = std::min(target.find('/', at), target.size());
    auto part = target.substr(at, end - at);
    if (part == "..")
      --depth;
    else if (!part.empty() && part != ".")
      ++depth;
    if (depth < 0)
      return true;
    at = end + 1;
  }
  return false;
}

std::pair<std::string, std::string> split(const std::string& name) {
  auto slash = name.rfind('/');
  if (slash == std::string::npos)
    return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

} // namespace dsec
