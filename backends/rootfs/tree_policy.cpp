#include "backends/rootfs/tree_policy.hpp"

#include "state/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>

namespace dsec {

namespace {

constexpr std::size_t shown_max = 20;

bool has_overlay_attribute(const std::filesystem::path& path) {
  auto bytes = ::llistxattr(path.c_str(), nullptr, 0);
  if (bytes <= 0)
    return false;
  std::string names(static_cast<std::size_t>(bytes), '\0');
  bytes = ::llistxattr(path.c_str(), names.data(), names.size());
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(0, bytes)));
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    std::string_view name = names.c_str() + at;
    if (name.starts_with("trusted.overlay.") || name.starts_with("user.overlay."))
      return true;
  }
  return false;
}

/// Why this kind of file has no place in a layer; empty if it has.
std::string_view refusal(mode_t mode) {
  if (S_ISCHR(mode))
    return "character device";
  if (S_ISBLK(mode))
    return "block device";
  if (S_ISFIFO(mode))
    return "FIFO";
  if (S_ISSOCK(mode))
    return "socket";
  return {};
}

} // namespace

void refused_entries::add(std::string_view path, std::string_view reason) {
  if (++count_ <= shown_max)
    shown_.push_back(fmt::format("{} ({})", printable(path), reason));
}

error refused_entries::to_error(std::string_view what) const {
  auto more = count_ > shown_max ? fmt::format(" and {} more", count_ - shown_max) : "";
  return {errc::invalid_argument,
          fmt::format("{}: {} entries refused: {}{}", what, count_, fmt::join(shown_, ", "), more)};
}

bool is_in_dev(std::string_view relative_path) {
  return relative_path.starts_with("dev/");
}

result<tree_census> take_census(const std::filesystem::path& tree) {
  namespace fs = std::filesystem;
  auto what = fmt::format("import {}", tree.string());
  tree_census out;
  refused_entries refused;
  std::error_code failure;
  auto skip = tree.native().size() + (tree.native().ends_with('/') ? 0 : 1);
  fs::recursive_directory_iterator i{tree, failure};
  for (; !failure && i != fs::recursive_directory_iterator{}; i.increment(failure)) {
    const auto& path = i->path();
    auto name = path.native().substr(skip);

    struct stat status {};

    if (::lstat(path.c_str(), &status) != 0)
      return errno_error(errno, fmt::format("{}: look at {}", what, printable(name)));
    ++out.files;
    auto reason = refusal(status.st_mode);
    bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
    if (device && is_in_dev(name))
      out.devices.push_back(name);
    else if (!reason.empty())
      refused.add(name, reason);
    else if (has_overlay_attribute(path))
      refused.add(name, "overlayfs attribute");
  }
  if (failure)
    return errno_error(failure.value(), what + ": walk the tree");
  if (!refused.empty())
    return refused.to_error(what);
  // Walks are in the order of the file system; nothing that depends on it may leave here.
  std::sort(out.devices.begin(), out.devices.end());
  out.files -= out.devices.size();
  return out;
}

} // namespace dsec
