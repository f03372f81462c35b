#include "tests/fuzz/throwaway.hpp"

#include "tests/fuzz/input.hpp"

#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <vector>

namespace dsec::fuzz {

namespace {

/// Told to ctest in CMakeLists.txt; libFuzzer has other ones.
constexpr int exit_of_the_skipped = 4;

constexpr const char* top = "/mnt";
constexpr const char* secret = "/mnt/outside/secret";

void must(bool ok, const char* what) {
  if (ok)
    return;
  std::fprintf(stderr, "throwaway tree: %s: %s\n", what, std::strerror(errno));
  // Not a finding: libFuzzer keeps no input for an exit.
  std::exit(2);
}

bool set_read_only(const char* path, bool wanted, unsigned flags) {
  mount_attr attributes{};
  (wanted ? attributes.attr_set : attributes.attr_clr) = MOUNT_ATTR_RDONLY;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &attributes, sizeof attributes) == 0;
}

/// Names of a folder but "." and "..".
std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  // The stream owns what it is given.
  DIR* open = ::fdopendir(folder);
  must(open != nullptr, "read a folder");
  while (const auto* entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(name);
  }
  ::closedir(open);
  return names;
}

int open_folder(int at, const char* name) {
  const int folder = ::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  must(folder >= 0, name);
  return folder;
}

/// Everything in a folder, and below it. False if a mount point is left.
bool empty_out(int folder) {
  bool all = true;
  for (const auto& name : names_in(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC))) {
    if (::unlinkat(folder, name.c_str(), 0) == 0
        || ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0)
      continue;
    if (errno == ENOTEMPTY) {
      const int below = open_folder(folder, name.c_str());
      const bool emptied = empty_out(below);
      ::close(below);
      if (emptied && ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0)
        continue;
    }
    all = false;
  }
  return all;
}

struct stat status_of(const char* path) {
  struct stat s {};

  must(::lstat(path, &s) == 0, path);
  return s;
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_mode == b.st_mode && a.st_uid == b.st_uid
         && a.st_gid == b.st_gid && a.st_nlink == b.st_nlink && a.st_size == b.st_size
         && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec
         && a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

struct stat outside_before, secret_before, top_before;

} // namespace

void throwaway::enter(bool with_proc) {
  if (::geteuid() != 0) {
    std::fprintf(stderr, "skipped: needs root, for a mount namespace of its own\n");
    std::exit(exit_of_the_skipped);
  }
  char here[4096];
  must(::getcwd(here, sizeof here) != nullptr, "find the working directory");
  must(::unshare(CLONE_NEWNS) == 0, "a mount namespace (needs root)");
  must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make / private");
  must(::mount(here, here, nullptr, MS_BIND, nullptr) == 0, "bind the working directory");
  must(set_read_only("/", true, AT_RECURSIVE), "make the machine read-only");
  must(::chdir(here) == 0 && set_read_only(".", false, 0), "write in the working directory");
  must(::mount("tmpfs", top, "tmpfs", 0, "mode=755,size=256m") == 0, "mount a tmpfs");
  must(::mkdir(root, 0755) == 0 && ::mkdir(outside, 0755) == 0, "make folders");
  const int file = ::open(secret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  must(file >= 0 && ::ftruncate(file, secret_bytes) == 0 && ::close(file) == 0, "make the secret");
  if (with_proc) {
    const auto proc = std::string{root} + "/proc";
    must(::mkdir(proc.c_str(), 0555) == 0
           && ::mount("proc", proc.c_str(), "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                      "subset=pid")
                == 0,
         "mount proc");
  }
  outside_before = status_of(outside);
  secret_before = status_of(secret);
  top_before = status_of(top);
}

void throwaway::clear() {
  must(::chown(root, 0, 0) == 0 && ::chmod(root, 0755) == 0, root);
  const int folder = open_folder(AT_FDCWD, root);
  (void)empty_out(folder);
  ::close(folder);
}

void throwaway::check_outside() {
  claim(same(status_of(outside), outside_before), "the folder outside is as it was");
  claim(same(status_of(secret), secret_before), "the file outside is as it was");
  claim(same(status_of(top), top_before), "nothing has appeared beside the root");
}

void throwaway::check_inside(int file) {
  char path[8192];
  const auto link = "/proc/self/fd/" + std::to_string(file);
  const auto size = ::readlink(link.c_str(), path, sizeof path);
  must(size > 0, link.c_str());
  const std::string_view where{path, static_cast<std::size_t>(size)};
  const std::string_view inside = root;
  claim(where.starts_with(inside) && (where.size() == inside.size() || where[inside.size()] == '/'),
        "an opened file lies beneath the root", where);
}

} // namespace dsec::fuzz
