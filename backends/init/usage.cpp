#include "backends/init/usage.hpp"

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace dsec::init {

namespace {

std::string content(int folder, const char* name) {
  kj::AutoCloseFd file{folder < 0 ? -1 : ::openat(folder, name, O_RDONLY | O_CLOEXEC)};
  std::string text;
  char buffer[4096];
  for (ssize_t n; file.get() >= 0 && (n = ::read(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The sum of every "key=number" in the text.
std::uint64_t sum_of(std::string_view text, std::string_view key) {
  std::uint64_t sum = 0;
  for (auto at = text.find(key); at != text.npos; at = text.find(key, at + key.size()))
    sum += number_in(text.substr(at + key.size()));
  return sum;
}

} // namespace

kj::AutoCloseFd open_disk_account(int directory) {
  struct statfs fs {};

  btrfs_ioctl_ino_lookup_args lookup{};
  lookup.objectid = BTRFS_FIRST_FREE_OBJECTID;
  btrfs_ioctl_fs_info_args info{};
  if (directory < 0 || ::fstatfs(directory, &fs) != 0 || fs.f_type != BTRFS_SUPER_MAGIC
      || ::ioctl(directory, BTRFS_IOC_INO_LOOKUP, &lookup) != 0
      || ::ioctl(directory, BTRFS_IOC_FS_INFO, &info) != 0)
    return nullptr;
  std::string path = "/sys/fs/btrfs/";
  for (unsigned i = 0; i < sizeof info.fsid; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                  info.fsid[i]);
    path += digits;
  }
  path += "/qgroups/0_" + std::to_string(lookup.treeid);
  return kj::AutoCloseFd{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

std::uint64_t disk_bytes(int account) {
  return number_in(content(account, "referenced")) + number_in(content(account, "rsv_data"));
}

block_traffic block_traffic_of(int group) {
  const auto text = content(group, "io.stat");
  return {sum_of(text, " rbytes="), sum_of(text, " wbytes=")};
}

} // namespace dsec::init
