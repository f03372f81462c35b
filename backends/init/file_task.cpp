#include "backends/init/file_task.hpp"

#include "backends/init/file_open.hpp"
#include "backends/init/terminal.hpp"

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
  tell(socket, status, fd);
  ::_exit(0);
}

[[noreturn]] void refuse(int socket, int number) {
  file_reading status;
  status.number = number;
  answer(socket, status, -1);
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
      entry.status = reading_of(s);
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

void tell(int socket, const file_reading& status, int fd) {
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
}

int enter_inside(int user_namespace, int mount_namespace) {
  if (::setns(user_namespace, CLONE_NEWUSER) != 0 || ::setns(mount_namespace, CLONE_NEWNS) != 0)
    return errno;
  ::umask(0);
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, 0, 0, 0) != 0
      || ::syscall(SYS_setresuid, 0, 0, 0) != 0)
    return errno;
  return 0;
}

void serve_file_task(const file_request& request, int user_namespace, int mount_namespace,
                     int memory_file, int socket) {
  if (int number = enter_inside(user_namespace, mount_namespace))
    refuse(socket, number);
  if (request.task == file_task::list)
    list_directory(request.directory, memory_file, socket);
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    refuse(socket, errno);
  const auto done = request.task == file_task::open_terminal ? open_terminal(request, root)
                                                             : open_in_root(request, root);
  answer(socket, done.status, done.file);
}

} // namespace dsec::init
