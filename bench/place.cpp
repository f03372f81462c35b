#include "bench/place.hpp"

#include "bench/spawn.hpp"

#include <linux/btrfs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace dsec::bench {

namespace {

constexpr auto scratch_bytes = std::uintmax_t{16} << 30;
/// BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, which the headers of Debian 12 lack.
constexpr auto enable_simple_quota = 4;

volatile std::sig_atomic_t interrupted = 0;

/// The words numbered `column` of the lines of `file` that start with `prefix`.
std::vector<std::string> paths_below(const char* file, int column, const std::string& prefix) {
  std::vector<std::string> found;
  std::ifstream lines{file};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string word;
    for (int i = 0; i <= column; ++i)
      words >> word;
    if (word.starts_with(prefix))
      found.push_back(word);
  }
  return found;
}

/// A loop device that ends with its last user.
fd attach_loop(const std::filesystem::path& file, std::string& device) {
  const fd control{checked(::open("/dev/loop-control", O_RDWR | O_CLOEXEC), "open loop-control")};
  const fd backing{checked(::open(file.c_str(), O_RDWR | O_CLOEXEC), "open " + file.string())};
  loop_config config{};
  config.fd = static_cast<std::uint32_t>(backing.get());
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  for (;;) {
    const int number = checked(::ioctl(control.get(), LOOP_CTL_GET_FREE), "find a loop device");
    device = "/dev/loop" + std::to_string(number);
    fd loop{checked(::open(device.c_str(), O_RDWR | O_CLOEXEC), "open " + device)};
    if (::ioctl(loop.get(), LOOP_CONFIGURE, &config) == 0)
      return loop;
    if (errno != EBUSY)
      checked(-1, "configure " + device);
  }
}

} // namespace

place::place() {
  checked(::unshare(CLONE_NEWNS), "unshare mounts");
  checked(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
  std::string name = (std::filesystem::temp_directory_path() / "dsec-bench-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    checked(-1, "make " + name);
  root_ = name;
  checked(::chmod(root_.c_str(), 0755), "chmod " + name);
}

place::~place() {
  const auto prefix = root_.string() + "/";
  for (const auto& file : paths_below("/proc/swaps", 0, prefix))
    ::swapoff(file.c_str());
  auto mounts = paths_below("/proc/self/mountinfo", 4, prefix);
  for (auto mount = mounts.rbegin(); mount != mounts.rend(); ++mount)
    ::umount2(mount->c_str(), MNT_DETACH);
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::filesystem::path place::folder(const std::string& name) const {
  const auto path = root_ / name;
  checked(::mkdir(path.c_str(), 0755), "mkdir " + path.string());
  return path;
}

std::filesystem::path place::mount_scratch(const std::string& name) const {
  const auto image = root_ / (name + ".btrfs");
  const fd created{checked(::creat(image.c_str(), 0600), "create " + image.string())};
  std::filesystem::resize_file(image, scratch_bytes);
  run_program({"mkfs.btrfs", "-q", "-K", "-m", "single", image});
  const auto path = folder(name);
  std::string device;
  const auto loop = attach_loop(image, device);
  checked(::mount(device.c_str(), path.c_str(), "btrfs", MS_NOSUID | MS_NODEV, nullptr),
          "mount " + device);
  const fd top{checked(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path.string())};
  btrfs_ioctl_quota_ctl_args quota{};
  quota.cmd = enable_simple_quota;
  checked(::ioctl(top.get(), BTRFS_IOC_QUOTA_CTL, &quota), "enable simple quotas");
  return path;
}

void catch_interrupts() {
  for (const int number : {SIGINT, SIGTERM})
    std::signal(number, [](int) { interrupted = 1; });
  std::signal(SIGPIPE, SIG_IGN);
}

void go_on() {
  if (interrupted)
    throw std::runtime_error{"interrupted"};
}

} // namespace dsec::bench
