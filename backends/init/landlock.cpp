#include "backends/init/landlock.hpp"

#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <unistd.h>

namespace dsec::init {

namespace {

// By number where Debian 12's header does not name them yet.
constexpr std::uint64_t right_refer = 1ULL << 13;
constexpr std::uint64_t net_bind_and_connect = 3;

struct ruleset {
  std::uint64_t fs;
  std::uint64_t net; // Since version 4.
};

constexpr std::uint64_t rights_of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE
                                          | LANDLOCK_ACCESS_FS_READ_FILE | (1ULL << 14)
                                          | (1ULL << 15); // truncate, ioctl_dev

} // namespace

int landlock_version() {
  long n = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return n < 0 ? 0 : static_cast<int>(n);
}

std::uint64_t landlock_all_rights(int version) {
  constexpr std::uint64_t first = (1ULL << 13) - 1;
  auto rights = first;
  if (version >= 2)
    rights |= right_refer;
  if (version >= 3)
    rights |= 1ULL << 14; // truncate
  if (version >= 5)
    rights |= 1ULL << 15; // ioctl_dev
  return rights;
}

int landlock_restrict(std::uint64_t handled, std::initializer_list<landlock_rule> rules,
                      bool no_network) {
  const int version = landlock_version();
  if (version == 0)
    return 0;
  const auto known = landlock_all_rights(version);
  ruleset wanted{handled & known, no_network && version >= 4 ? net_bind_and_connect : 0};
  const auto size = version >= 4 ? sizeof wanted : sizeof wanted.fs;
  const int fd = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &wanted, size, 0));
  if (fd < 0)
    return errno;
  int failed = 0;
  for (const auto& rule : rules) {
    if (rule.fd < 0)
      continue;

    struct stat s {};

    if (::fstat(rule.fd, &s) != 0) {
      failed = errno;
      break;
    }
    landlock_path_beneath_attr beneath{};
    beneath.parent_fd = rule.fd;
    beneath.allowed_access = rule.rights & wanted.fs;
    if (!S_ISDIR(s.st_mode))
      beneath.allowed_access &= rights_of_files;
    if (beneath.allowed_access == 0)
      continue;
    if (::syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
      failed = errno;
      break;
    }
  }
  if (failed == 0 && ::syscall(SYS_landlock_restrict_self, fd, 0) != 0)
    failed = errno;
  ::close(fd);
  return failed;
}

} // namespace dsec::init
