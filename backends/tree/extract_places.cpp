#include "backends/rootfs/archive_paths.hpp"
#include "backends/tree/extraction.hpp"

#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dsec {

namespace {

/// Names of directories that wait for their times, in all.
constexpr std::size_t remembered_bytes_max = 32 << 20;

} // namespace

result<file_descriptor> extraction::open_folder(const std::string& name) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve =
    RESOLVE_NO_MAGICLINKS | (layer() ? RESOLVE_IN_ROOT : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  auto number = ::syscall(SYS_openat2, root_, name.empty() ? "." : name.c_str(), &how, sizeof how);
  if (number < 0)
    return failed("open folder", name, errno);
  return file_descriptor{static_cast<int>(number)};
}

result<file_descriptor> extraction::make_folder(const std::string& name) {
  auto folder = open_folder(name);
  if (folder || failed_number_ != ENOENT || name.empty())
    return folder;
  auto at = find_place(name);
  if (!at)
    return at.error();
  if (::mkdirat(at->folder.get(), at->name.c_str(), 0755) != 0 && errno != EEXIST)
    return failed("make folder", name, errno);
  if (layer())
    if (auto ok = remember(name, {0, 0, 0755, {}}); !ok)
      return ok.error();
  return open_folder(name);
}

result<extraction::place> extraction::find_place(const std::string& name) {
  auto [parent_name, last] = split(name);
  auto parent = make_folder(parent_name);
  if (!parent)
    return parent.error();
  return place{std::move(*parent), std::move(last)};
}

result<extraction::place> extraction::file_place(const std::string& name) {
  auto at = find_place(name);
  if (!at)
    return at;

  struct stat status {};

  if (::fstatat(at->folder.get(), at->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? std::move(at) : failed("replace", name, errno);
  if (S_ISDIR(status.st_mode))
    return failed("replace", name, EISDIR);
  at->what = replacing::something;
  return at;
}

result<void> extraction::remember(std::string name, const attributes& with) {
  directories_bytes_ += name.size() + sizeof(directory);
  directories_.push_back({std::move(name), with});
  if (directories_bytes_ < remembered_bytes_max)
    return {};
  // No archive may take memory without end. What else comes into these changes their times.
  return finish_directories();
}

result<void> extraction::finish_directories() {
  // Deepest last entry wins.
  for (const auto& x : directories_)
    if (auto ok = finish_directory(x); !ok && layer())
      return ok;
  directories_.clear();
  directories_bytes_ = 0;
  return {};
}

result<void> extraction::finish_directory(const directory& x) {
  auto [parent_name, last] = split(x.name);
  auto parent = open_folder(parent_name);
  if (!parent)
    return parent.error();
  file_descriptor folder{::openat(parent->get(), last.empty() ? "." : last.c_str(),
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  // A later entry put something else in its place.
  if (!folder && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
    return {};
  const timespec times[] = {x.with.modified, x.with.modified};
  if (!folder || ::fchown(folder.get(), x.with.uid, x.with.gid) != 0
      || ::fchmod(folder.get(), x.with.mode) != 0 || ::futimens(folder.get(), times) != 0)
    return failed("finish folder", x.name, errno);
  return {};
}

} // namespace dsec
