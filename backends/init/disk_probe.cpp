#include "backends/init/disk_probe.hpp"

#include <kj/io.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

namespace {

bool is_full(int folder) {
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

} // namespace

bool disk_probe::full() {
  return full_ = folder_ >= 0 && is_full(folder_);
}

disk_probe::stay disk_probe::enter() {
  stay s;
  s.alone = inside_++ == 0;
  s.number = ++entered_;
  // Only a disk that was seen full is worth a look.
  s.full_before = full_ && full();
  return s;
}

bool disk_probe::is_said_in(std::string_view output) {
  // Without the first letter, which some write small.
  for (std::string_view words : {"o space left on device", "isk quota exceeded"})
    if (output.find(words) != std::string_view::npos)
      return true;
  return false;
}

} // namespace dsec::init
