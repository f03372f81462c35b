#include "backends/init/file_open.hpp"

#include "backends/tree/pack_file.hpp"

#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr int attempts_max = 1000;

} // namespace

kj::AutoCloseFd open_beneath(int root, const char* path, std::uint64_t flags, mode_t permissions) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = (flags & O_CREAT) ? permissions : 0;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  int opened = -1;
  // The kernel does not say where ".." leads while anybody renames anything: asked again, it does.
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    opened = static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
    if (opened >= 0 || errno != EAGAIN)
      break;
  }
  return kj::AutoCloseFd{opened};
}

int make_parents(int root, const char* path) {
  char prefix[4096];
  kj::AutoCloseFd above;
  for (std::size_t i = 0; path[i]; ++i) {
    if (i + 1 >= sizeof prefix)
      return ENAMETOOLONG;
    prefix[i] = path[i];
    if (i == 0 || path[i] != '/' || path[i - 1] == '/')
      continue;
    prefix[i] = 0;
    auto here = open_beneath(root, prefix, O_PATH | O_DIRECTORY, 0);
    if (here.get() < 0 && errno == ENOENT) {
      const char* name = std::strrchr(prefix, '/');
      const int in = above.get() < 0 ? root : above.get();
      if (::mkdirat(in, name ? name + 1 : prefix, 0755) != 0 && errno != EEXIST)
        return errno;
      here = open_beneath(root, prefix, O_PATH | O_DIRECTORY, 0);
    }
    if (here.get() < 0)
      return errno;
    above = kj::mv(here);
    prefix[i] = '/';
  }
  return 0;
}

namespace {

int open_flags(file_task task) {
  switch (task) {
  case file_task::open_read:
    return O_RDONLY | O_NONBLOCK | O_NOCTTY;
  case file_task::open_write:
  case file_task::open_append:
    return O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY;
  case file_task::open_directory:
    return O_RDONLY | O_DIRECTORY;
  case file_task::status:
    return O_PATH | O_NOFOLLOW;
  case file_task::list:
  case file_task::open_terminal:
    break;
  }
  return 0;
}

file_answer refusal(int number) {
  file_answer refused;
  refused.status.number = number;
  return refused;
}

/// Whoever owns a file may give it any time: beyond what nanoseconds can say stands the last that
/// they can.
std::int64_t nanoseconds(const timespec& time) {
  using limits = std::numeric_limits<std::int64_t>;
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(time.tv_sec, std::int64_t{1'000'000'000}, &sum)
      || __builtin_add_overflow(sum, time.tv_nsec, &sum))
    return time.tv_sec < 0 ? limits::min() : limits::max();
  return sum;
}

/// A file that says it has no bytes may have some (/proc, /sys), and to read them may take long, or
/// what only the sandbox's root may: they go into a memory file, which takes its place. Returns 0
/// or an errno value.
int hold_unsized(kj::AutoCloseFd& file) {
  static char piece[64 << 10];
  kj::AutoCloseFd held;
  for (std::uint64_t bytes = 0;;) {
    const ssize_t n = ::read(file, piece, sizeof piece);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      break;
    bytes += static_cast<std::uint64_t>(n);
    if (bytes > unsized_bytes_max)
      return EFBIG;
    if (held.get() < 0)
      held = kj::AutoCloseFd{::memfd_create("dsec-file", MFD_CLOEXEC)};
    for (ssize_t at = 0; at < n;) {
      const ssize_t wrote = ::write(held, piece + at, static_cast<std::size_t>(n - at));
      if (wrote < 0)
        return errno;
      at += wrote;
    }
  }
  if (held.get() >= 0)
    file = kj::mv(held);
  return 0;
}

} // namespace

file_reading reading_of(const struct stat& from) {
  file_reading status;
  status.mode = from.st_mode;
  status.uid = from.st_uid;
  status.gid = from.st_gid;
  status.size = static_cast<std::uint64_t>(from.st_size);
  status.modified_ns = nanoseconds(from.st_mtim);
  return status;
}

file_answer open_in_root(const file_request& request, int root) {
  const char* path = request.path.c_str();
  if (request.make_parents)
    if (int number = make_parents(root, path))
      return refusal(number);
  auto file = open_beneath(root, path, static_cast<std::uint64_t>(open_flags(request.task)),
                           request.permissions & 07777);
  if (file.get() < 0)
    return refusal(errno);

  struct stat s {};

  if (::fstat(file, &s) != 0)
    return refusal(errno);
  if (request.task == file_task::status)
    return {reading_of(s), {}};
  const bool right =
    request.task == file_task::open_directory ? S_ISDIR(s.st_mode) : S_ISREG(s.st_mode);
  if (!right)
    return refusal(S_ISDIR(s.st_mode) ? EISDIR : ENXIO);
  // Only now that it is known to be a regular file.
  if (request.task == file_task::open_write && ::ftruncate(file, 0) != 0)
    return refusal(errno);
  if (request.task == file_task::open_read && s.st_size == 0)
    if (int number = hold_unsized(file))
      return refusal(number);
  return {reading_of(s), kj::mv(file)};
}

} // namespace dsec::init
