#include "backends/init/disk_probe.hpp"

#include <kj/io.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

bool disk_is_full(int folder) {
  if (folder < 0)
    return false;
  // A named file: an unnamed one is not in every file system, and Landlock grants it less plainly.
  constexpr char name[] = ".dsec-probe";
  static char block[64 << 10];
  std::memset(block, 0x5a, sizeof block);
  kj::AutoCloseFd file{
    ::openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.get() < 0)
    return errno == ENOSPC || errno == EDQUOT;
  const ssize_t n = ::write(file, block, sizeof block);
  const bool full =
    n < 0 ? errno == ENOSPC || errno == EDQUOT : n < static_cast<ssize_t>(sizeof block);
  ::unlinkat(folder, name, 0);
  return full;
}

} // namespace dsec::init
