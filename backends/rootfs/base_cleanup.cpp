#include "backends/rootfs/base_cleanup.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <string_view>

namespace dsec {

namespace fs = std::filesystem;

namespace {

/// Folders that stay, empty.
constexpr std::array emptied{
  "boot",
  "dev",
  "proc",
  "run",
  "sys",
  "tmp",
  "var/cache/apt",
  "var/tmp",
  "var/cache/man",
  "var/cache/ldconfig",
  "var/lib/apt/lists",
  "var/lib/apt/mirrors",
};

/// Of this machine, of this installation, or backups whose content depends on the order of work.
constexpr std::array removed{
  "debootstrap",
  "etc/.pwd.lock",
  "etc/apt/apt.conf.d/99mmdebstrap",
  "etc/apt/auth.conf.d",
  "etc/apt/sources.list",
  "etc/apt/sources.list.d",
  "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
  "etc/group-",
  "etc/gshadow-",
  "etc/hostname",
  "etc/passwd-",
  "etc/resolv.conf",
  "etc/shadow-",
  "etc/subgid-",
  "etc/subuid-",
  "root/.bash_history",
  "var/cache/debconf/config.dat-old",
  "var/cache/debconf/passwords.dat-old",
  "var/cache/debconf/templates.dat-old",
  "var/lib/dbus/machine-id",
  "var/lib/dpkg/available-old",
  "var/lib/dpkg/diversions-old",
  "var/lib/dpkg/lock",
  "var/lib/dpkg/lock-frontend",
  "var/lib/dpkg/statoverride-old",
  "var/lib/dpkg/status-old",
  "var/lib/systemd/random-seed",
};

/// Documentation that debootstrap installs, as it knows no filters.
constexpr std::array documentation{
  "usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man",
};

void empty_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& x : fs::directory_iterator{folder, ignored})
    fs::remove_all(x.path(), ignored);
}

result<void> remove_logs(const fs::path& folder) {
  std::error_code failure;
  for (const auto& x : fs::recursive_directory_iterator{folder, failure})
    if (!x.is_directory())
      fs::remove(x.path(), failure);
  if (failure && failure.value() != ENOENT)
    return errno_error(failure.value(), fmt::format("clean {}", folder.string()));
  return {};
}

result<void> set_back(const fs::path& path, std::int64_t epoch) {
  struct stat status {};

  if (::lstat(path.c_str(), &status) != 0)
    return errno_error(errno, fmt::format("look at {}", path.string()));
  if (status.st_mtim.tv_sec < epoch)
    return {};
  const timespec times[] = {{epoch, 0}, {epoch, 0}};
  if (::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error(errno, fmt::format("set time of {}", path.string()));
  return {};
}

} // namespace

result<void> clean_base(const fs::path& tree, std::int64_t epoch) {
  std::error_code failure;
  for (auto x : emptied)
    empty_folder(tree / x);
  for (auto x : removed)
    fs::remove_all(tree / x, failure);
  for (auto x : documentation)
    empty_folder(tree / x);
  if (auto ok = remove_logs(tree / "var/log"); !ok)
    return ok;
  // Empty, not absent: what reads it at start then knows that there is none.
  if (fs::exists(tree / "etc/machine-id", failure))
    std::ofstream{tree / "etc/machine-id", std::ios::trunc};

  for (const auto& x : fs::recursive_directory_iterator{tree, failure})
    if (auto ok = set_back(x.path(), epoch); !ok)
      return ok;
  if (failure)
    return errno_error(failure.value(), fmt::format("clean {}", tree.string()));
  return {};
}

} // namespace dsec
