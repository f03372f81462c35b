#include "backends/init/file_task.hpp"

#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace dsec::init {

namespace {

/// A listing beyond this is refused: the answer must fit a message.
constexpr std::size_t listing_bytes_max = 32 << 20;

[[noreturn]] void answer(int socket, const file_reading& status, int fd) {
  iovec part{const_cast<file_reading*>(&status), sizeof status};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))]{};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ::sendmsg(socket, &message, MSG_NOSIGNAL);
  ::_exit(0);
}

[[noreturn]] void refuse(int socket, int number) {
  file_reading status;
  status.number = number;
  answer(socket, status, -1);
}

file_reading from(const struct stat& s) {
  file_reading status;
  status.mode = s.st_mode;
  status.uid = s.st_uid;
  status.gid = s.st_gid;
  status.size = static_cast<std::uint64_t>(s.st_size);
  status.modified_ns = s.st_mtim.tv_sec * 1'000'000'000LL + s.st_mtim.tv_nsec;
  return status;
}

int open_beneath(int root, const char* path, std::uint64_t flags, mode_t permissions) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = (flags & O_CREAT) ? permissions : 0;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
}

/// Makes the directories above the last component of `path`. Returns 0 or an errno value.
int make_parents(int root, const char* path) {
  char prefix[4096];
  int above = root;
  for (std::size_t i = 0; path[i]; ++i) {
    if (i + 1 >= sizeof prefix)
      return ENAMETOOLONG;
    prefix[i] = path[i];
    if (i == 0 || path[i] != '/' || path[i - 1] == '/')
      continue;
    prefix[i] = 0;
    int here = open_beneath(root, prefix, O_PATH | O_DIRECTORY, 0);
    if (here < 0 && errno == ENOENT) {
      const char* name = std::strrchr(prefix, '/');
      if (::mkdirat(above, name ? name + 1 : prefix, 0755) != 0 && errno != EEXIST)
        return errno;
      here = open_beneath(root, prefix, O_PATH | O_DIRECTORY, 0);
    }
    if (here < 0)
      return errno;
    if (above != root)
      ::close(above);
    above = here;
    prefix[i] = '/';
  }
  return 0;
}

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
    break;
  }
  return 0;
}

[[noreturn]] void open_path(const file_request& request, int root, int socket) {
  const char* path = request.path.c_str();
  if (request.make_parents)
    if (int number = make_parents(root, path))
      refuse(socket, number);
  const int fd = open_beneath(root, path, static_cast<std::uint64_t>(open_flags(request.task)),
                              request.permissions & 07777);
  if (fd < 0)
    refuse(socket, errno);

  struct stat s {};

  if (::fstat(fd, &s) != 0)
    refuse(socket, errno);
  if (request.task == file_task::status)
    answer(socket, from(s), -1);
  const bool right =
    request.task == file_task::open_directory ? S_ISDIR(s.st_mode) : S_ISREG(s.st_mode);
  if (!right)
    refuse(socket, S_ISDIR(s.st_mode) ? EISDIR : ENXIO);
  // Only now that it is known to be a regular file.
  if (request.task == file_task::open_write && ::ftruncate(fd, 0) != 0)
    refuse(socket, errno);
  answer(socket, from(s), fd);
}

struct linux_dirent {
  std::uint64_t inode;
  std::int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[];
};

[[noreturn]] void list_directory(int directory, int memory, int socket) {
  static char in[64 << 10];
  std::size_t written = 0;
  if (::lseek(directory, 0, SEEK_SET) < 0)
    refuse(socket, errno);
  for (;;) {
    const long n = ::syscall(SYS_getdents64, directory, in, sizeof in);
    if (n < 0)
      refuse(socket, errno);
    if (n == 0)
      break;
    for (long at = 0; at < n;) {
      auto* found = reinterpret_cast<linux_dirent*>(in + at);
      at += found->bytes;
      if (std::strcmp(found->name, ".") == 0 || std::strcmp(found->name, "..") == 0)
        continue;

      struct stat s {};

      if (::fstatat(directory, found->name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        continue; // Gone meanwhile.
      file_entry entry;
      entry.status = from(s);
      entry.name_bytes = static_cast<std::uint32_t>(std::strlen(found->name));
      iovec parts[2] = {{&entry, sizeof entry}, {found->name, entry.name_bytes}};
      const ssize_t wrote = ::writev(memory, parts, 2);
      if (wrote < 0)
        refuse(socket, errno);
      written += static_cast<std::size_t>(wrote);
      if (written > listing_bytes_max)
        refuse(socket, EMSGSIZE);
    }
  }
  answer(socket, {}, memory);
}

} // namespace

void serve_file_task(const file_request& request, int user_namespace, int mount_namespace,
                     int memory_file, int socket) {
  if (::setns(user_namespace, CLONE_NEWUSER) != 0 || ::setns(mount_namespace, CLONE_NEWNS) != 0)
    refuse(socket, errno);
  ::umask(0);
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, 0, 0, 0) != 0
      || ::syscall(SYS_setresuid, 0, 0, 0) != 0)
    refuse(socket, errno);
  if (request.task == file_task::list)
    list_directory(request.directory, memory_file, socket);
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    refuse(socket, errno);
  open_path(request, root, socket);
}

} // namespace dsec::init
