#include "backends/spawner/scratch.hpp"

#include "backends/kill_point.hpp"

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>

namespace dsec::spawner {

namespace {

/// BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, which Debian 12's headers do not have yet.
constexpr std::uint64_t enable_simple_quota = 4;

constexpr std::uint64_t default_size = 64ull << 30;
constexpr std::uint64_t size_min = 256ull << 20;

void at_effect() {
  kill_point(crash_role::spawner);
}

/// btrfs gives the space of removed subvolumes back after its next commit, up to 30 s later.
/// Commits now, which starts that, and leaves it a moment.
void settle(int directory) {
  constexpr timespec pause{0, 20'000'000};
  ::ioctl(directory, BTRFS_IOC_SYNC);
  ::nanosleep(&pause, nullptr);
}

/// How often a create on a full disk waits for what was removed before it.
constexpr int settle_attempts_max = 10;

/// Less than an eighth is free.
bool nearly_full(int directory) {
  struct statfs now {};

  return ::fstatfs(directory, &now) == 0 && now.f_bavail < now.f_blocks / 8;
}

/// The loop device that `file` is attached to; empty if none.
std::string loop_device_of(const std::string& file) {
  struct stat wanted {};

  if (::stat(file.c_str(), &wanted) < 0)
    return {};
  std::string found;
  DIR* devices = ::opendir("/dev");
  while (auto* entry = devices && found.empty() ? ::readdir(devices) : nullptr) {
    if (std::strncmp(entry->d_name, "loop", 4) != 0)
      continue;
    auto path = std::string{"/dev/"} + entry->d_name;
    descriptor device{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    loop_info64 info{};
    if (device && ::ioctl(device.get(), LOOP_GET_STATUS64, &info) == 0
        && info.lo_device == wanted.st_dev && info.lo_inode == wanted.st_ino)
      found = path;
  }
  if (devices)
    ::closedir(devices);
  return found;
}

/// Two file systems on one file would destroy it. A former spawner's device goes a moment after its
/// mount, so there is some patience.
result<void> await_unused(const std::string& file) {
  constexpr int tries = 200;
  constexpr timespec pause{0, 10'000'000};
  std::string device;
  for (int i = 0; i < tries; ++i) {
    device = loop_device_of(file);
    if (device.empty())
      return {};
    ::nanosleep(&pause, nullptr);
  }
  return error{errc::unavailable, "use scratch file " + file + ": it is in use on " + device
                                    + "; a data-dir belongs to one run-dir at a time"};
}

result<void> make_filesystem(const std::string& file, std::uint64_t size) {
  at_effect();
  descriptor fd{::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) < 0)
    return errno_error(errno, "make scratch file " + file);
  int said[2];
  if (::pipe2(said, O_CLOEXEC) < 0)
    return errno_error(errno, "make a pipe for mkfs.btrfs");
  descriptor words{said[0]};
  descriptor its_end{said[1]};
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, its_end.get(), STDERR_FILENO);
  const char* arguments[] = {"mkfs.btrfs", "-q", "-f", "-K", "-m", "single", file.c_str(), nullptr};
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  int failed = ::posix_spawnp(&pid, arguments[0], &streams, &attributes,
                              const_cast<char* const*>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&streams);
  its_end.reset();
  if (failed != 0)
    return errno_error(failed, "run mkfs.btrfs (Debian package btrfs-progs)");
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  at_effect();
  if (status != 0) {
    char text[512];
    auto got = ::read(words.get(), text, sizeof text);
    return error{errc::unavailable,
                 "mkfs.btrfs on " + file + ": wait status " + std::to_string(status) + ", it said: "
                   + std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0)};
  }
  return {};
}

/// Attaches `file` to a loop device that detaches itself when the last user has gone.
result<std::pair<descriptor, std::string>> attach_loop(const std::string& file) {
  descriptor backing{::open(file.c_str(), O_RDWR | O_CLOEXEC)};
  descriptor control{::open("/dev/loop-control", O_RDWR | O_CLOEXEC)};
  if (!backing || !control)
    return errno_error(errno, "attach " + file + " to a loop device");
  for (int attempt = 0; attempt < 64; ++attempt) {
    int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0)
      return errno_error(errno, "get a free loop device");
    auto path = "/dev/loop" + std::to_string(number);
    descriptor device{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    if (!device)
      return errno_error(errno, "open " + path);
    for (std::uint32_t direct : {static_cast<std::uint32_t>(LO_FLAGS_DIRECT_IO), 0u}) {
      loop_config config{};
      config.fd = static_cast<std::uint32_t>(backing.get());
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR | direct;
      at_effect();
      if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
        at_effect();
        return std::pair{std::move(device), path};
      }
      if (errno == EBUSY)
        break;
    }
    if (errno != EBUSY)
      return errno_error(errno, "attach " + file + " to " + path);
  }
  return error{errc::unavailable,
               "attach " + file + ": every loop device offered was taken by others"};
}

result<void> mount_file(const std::string& file, const std::string& target) {
  auto loop = attach_loop(file);
  if (!loop)
    return loop.error();
  at_effect();
  if (::mount(loop->second.c_str(), target.c_str(), "btrfs", MS_NOATIME | MS_NOSUID | MS_NODEV,
              "discard=async")
      < 0) {
    auto cause = errno == ENODEV ? "this kernel has no btrfs" : std::strerror(errno);
    return error{errc::unavailable, "mount scratch " + file + " on " + target + ": " + cause};
  }
  at_effect();
  return {};
}

bool is_btrfs(const std::string& path) {
  struct statfs fs {};

  return ::statfs(path.c_str(), &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC;
}

} // namespace

std::uint64_t free_bytes(const std::string& path) {
  struct statvfs fs {};

  return ::statvfs(path.c_str(), &fs) == 0 ? std::uint64_t{fs.f_bavail} * fs.f_frsize : 0;
}

bool is_mount_point(int directory, const std::string& path) {
  struct statx st {};

  return ::statx(directory, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &st) == 0
         && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

result<scratch> scratch::open(const names& where, std::optional<std::uint64_t> size_bytes) {
  auto file = where.data("scratch.btrfs");
  auto target = where.run("scratch");
  if (::mkdir(target.c_str(), 0700) < 0 && errno != EEXIST)
    return errno_error(errno, "make " + target);
  if (!is_mount_point(AT_FDCWD, target)) {
    auto size = size_bytes.value_or(std::min(default_size, free_bytes(where.data_dir()) / 10 * 6));
    if (size < size_min)
      return error{errc::invalid_argument, "scratch-bytes: " + std::to_string(size) + " is below "
                                             + std::to_string(size_min)};

    struct stat st {};

    if (auto unused = await_unused(file); !unused)
      return unused.error();
    bool known = ::stat(file.c_str(), &st) == 0 && st.st_size == static_cast<off_t>(size);
    if (!known || !mount_file(file, target)) {
      if (auto made = make_filesystem(file, size); !made)
        return made.error();
      if (auto mounted = mount_file(file, target); !mounted)
        return mounted.error();
    }
  }
  if (!is_btrfs(target))
    return error{errc::unavailable, "use scratch " + target + ": something else is mounted there"};
  descriptor directory{::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!directory)
    return errno_error(errno, "open scratch " + target);
  ::fchmod(directory.get(), 0700);
  btrfs_ioctl_quota_ctl_args quota{};
  quota.cmd = enable_simple_quota;
  if (::ioctl(directory.get(), BTRFS_IOC_QUOTA_CTL, &quota) < 0 && errno != EEXIST)
    return error{errc::unavailable, "enable simple quotas on scratch " + target + ": "
                                      + std::strerror(errno) + " (Linux 6.7 is needed)"};
  return scratch{target, std::move(directory)};
}

result<descriptor> scratch::make(std::uint32_t slot, uid_t owner) const {
  auto subvolume = slot_name(slot);
  btrfs_ioctl_vol_args create{};
  std::strncpy(create.name, subvolume.c_str(), sizeof create.name - 1);
  at_effect();
  int failed = ::ioctl(directory_.get(), BTRFS_IOC_SUBVOL_CREATE, &create) < 0 ? errno : 0;
  for (int attempt = 0; failed == ENOSPC && attempt < settle_attempts_max; ++attempt) {
    settle(directory_.get());
    failed = ::ioctl(directory_.get(), BTRFS_IOC_SUBVOL_CREATE, &create) < 0 ? errno : 0;
  }
  if (failed != 0)
    return errno_error(failed, "make scratch subvolume " + subvolume);
  at_effect();
  descriptor directory{
    ::openat(directory_.get(), subvolume.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!directory)
    return errno_error(errno, "open scratch subvolume " + subvolume);
  for (auto* name : {"upper", "work"})
    if (::mkdirat(directory.get(), name, 0755) < 0
        || ::fchownat(directory.get(), name, owner, owner, 0) < 0)
      return errno_error(errno,
                         "make '" + std::string{name} + "' in scratch subvolume " + subvolume);
  return directory;
}

result<void> scratch::limit(int subvolume, std::uint64_t bytes) {
  btrfs_ioctl_ino_lookup_args lookup{};
  lookup.objectid = BTRFS_FIRST_FREE_OBJECTID;
  if (::ioctl(subvolume, BTRFS_IOC_INO_LOOKUP, &lookup) < 0)
    return errno_error(errno, "read the number of a scratch subvolume");
  btrfs_ioctl_qgroup_limit_args limit{};
  limit.qgroupid = lookup.treeid;
  limit.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  limit.lim.max_rfer = bytes;
  at_effect();
  if (::ioctl(subvolume, BTRFS_IOC_QGROUP_LIMIT, &limit) < 0)
    return errno_error(errno, "limit a scratch subvolume to " + std::to_string(bytes));
  at_effect();
  return {};
}

result<void> scratch::remove(std::uint32_t slot) const {
  auto subvolume = slot_name(slot);
  btrfs_ioctl_vol_args destroy{};
  std::strncpy(destroy.name, subvolume.c_str(), sizeof destroy.name - 1);
  at_effect();
  if (::ioctl(directory_.get(), BTRFS_IOC_SNAP_DESTROY, &destroy) < 0 && errno != ENOENT)
    return errno_error(errno, "remove scratch subvolume " + subvolume);
  at_effect();
  // Begun, not waited for: others are waiting to be removed.
  if (nearly_full(directory_.get()))
    ::ioctl(directory_.get(), BTRFS_IOC_START_SYNC, nullptr);
  return {};
}

std::vector<std::uint32_t> scratch::slots() const {
  std::vector<std::uint32_t> found;
  descriptor fd{::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  DIR* directory = fd ? ::fdopendir(fd.get()) : nullptr;
  if (!directory)
    return found;
  fd.release();
  while (auto* entry = ::readdir(directory))
    if (auto slot = slot_of(entry->d_name))
      found.push_back(*slot);
  ::closedir(directory);
  return found;
}

result<void> scratch::unmount() {
  directory_.reset();
  at_effect();
  if (::umount2(path_.c_str(), 0) < 0 && errno != EINVAL)
    return errno_error(errno, "unmount scratch " + path_);
  at_effect();
  ::rmdir(path_.c_str());
  return {};
}

} // namespace dsec::spawner
