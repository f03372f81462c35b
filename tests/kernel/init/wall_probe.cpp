// Runs inside a sandbox as its root and prints, one line each, what the kernel answers. With the
// word "allocate" and a number it only takes that many MiB of memory.

#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <sched.h>
#include <unistd.h>

namespace {

void say(const char* what, long answer) {
  std::printf("%s: %s\n", what, answer < 0 ? strerrorname_np(errno) : "ok");
}

void say_open(const char* path, int flags) {
  int fd = ::open(path, flags);
  std::printf("open %s: %s\n", path, fd < 0 ? strerrorname_np(errno) : "ok");
}

void reaper() {
  for (const char* path : {"/proc/1/mem", "/proc/1/environ", "/proc/1/exe", "/proc/1/fd",
                           "/proc/1/root", "/proc/1/cwd", "/proc/1/maps", "/proc/1/fd/3"})
    say_open(path, O_RDONLY);
  char buffer[64];
  say("readlink exe", ::readlink("/proc/1/exe", buffer, sizeof buffer));
  say("ptrace seize", ::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr));
  say("ptrace attach", ::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr));
  iovec here{buffer, sizeof buffer}, there{reinterpret_cast<void*>(0x400000), 8};
  say("process_vm_readv", ::process_vm_readv(1, &here, 1, &there, 1, 0));
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  say("pidfd_getfd", ::syscall(SYS_pidfd_getfd, pidfd, 3, 0));
  for (int number : {SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGCHLD, SIGRTMIN})
    ::kill(1, number);
  say("prlimit", ::syscall(SYS_prlimit64, 1, 7, nullptr, buffer));
}

void kernel() {
  say("reboot", ::syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
                          LINUX_REBOOT_CMD_RESTART, nullptr));
  say("mount", ::mount("none", "/tmp", "tmpfs", 0, nullptr));
  say("umount", ::umount2("/proc", MNT_DETACH));
  say("unshare user", ::unshare(CLONE_NEWUSER));
  say("unshare mount", ::unshare(CLONE_NEWNS));
  say("setns", ::setns(0, 0));
  say("clone user", ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.flags = CLONE_NEWUSER;
  say("clone3 user", ::syscall(SYS_clone3, &how, sizeof how));
  say("allow user namespaces", ::open("/proc/sys/user/max_user_namespaces", O_WRONLY));
  how.flags = CLONE_NEWNS;
  say("clone3 mount", ::syscall(SYS_clone3, &how, sizeof how));
  say("io_uring", ::syscall(SYS_io_uring_setup, 1, nullptr));
  say("bpf", ::syscall(SYS_bpf, 0, nullptr, 0));
  say("keyctl", ::syscall(SYS_keyctl, 0, 0));
  say("mknod", ::mknod("/tmp/device", S_IFCHR | 0600, makedev(1, 3)));
  say("mknod block", ::mknod("/tmp/device", S_IFBLK | 0600, makedev(7, 0)));
  int file = ::open("/tmp/probe", O_RDWR | O_CREAT, 0600);
  say("FICLONE", ::ioctl(file, FICLONE, file));
  say("FICLONE high bits", ::syscall(SYS_ioctl, file, 0xffffffff00000000UL | FICLONE, file));
  say("FITRIM", ::ioctl(file, FITRIM, nullptr));
  say("TIOCSTI", ::ioctl(file, TIOCSTI, "x"));
  say("copy_file_range", ::syscall(SYS_copy_file_range, file, nullptr, file, nullptr, 1, 0));
  say("vsock", ::socket(AF_VSOCK, SOCK_STREAM, 0));
  say("alg", ::socket(AF_ALG, SOCK_SEQPACKET, 0));
  say("packet", ::socket(AF_PACKET, SOCK_RAW, 0));
  say("netfilter", ::socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
  say("route", ::socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
  say("inet", ::socket(AF_INET, SOCK_STREAM, 0));
  say("personality", ::syscall(SYS_personality, 0x0100000));
  say("clock", ::syscall(SYS_clock_settime, 0, nullptr));
  ::mkdir("/tmp/a", 0755);
  ::mkdir("/tmp/b", 0755);
  ::close(::open("/tmp/a/f", O_CREAT | O_WRONLY, 0644));
  say("rename across", ::rename("/tmp/a/f", "/tmp/b/f"));
  say("link across", ::link("/tmp/b/f", "/tmp/a/g"));
}

/// Everything this process has inherited besides its streams is tried as a way to lie to dsec-init.
void forge() {
  int found = 0;
  for (int fd = 3; fd < 4096; ++fd) {
    char lie[16] = {5};
    if (::fcntl(fd, F_GETFD) < 0)
      continue;
    ++found;
    ::send(fd, lie, sizeof lie, MSG_NOSIGNAL);
  }
  std::printf("inherited: %d\n", found);
}

int allocate(int mib) {
  for (int i = 0; i < mib; ++i)
    std::memset(std::malloc(1 << 20), i + 1, 1 << 20);
  std::puts("allocated");
  return 0;
}

/// Fills memory, prints its checksum at every line read from standard input.
int hold(int mib) {
  const std::size_t size = static_cast<std::size_t>(mib) << 20;
  auto* memory = static_cast<unsigned char*>(std::malloc(size));
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < size; ++i)
    memory[i] = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
  for (char byte = 0;;) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size; ++i)
      sum = sum * 31 + memory[i];
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
    std::fflush(stdout);
    if (::read(0, &byte, 1) != 1)
      return 0;
  }
}

} // namespace

int main(int count, char** words) {
  if (count == 3 && !std::strcmp(words[1], "allocate"))
    return allocate(std::atoi(words[2]));
  if (count == 3 && !std::strcmp(words[1], "hold"))
    return hold(std::atoi(words[2]));
  forge();
  reaper();
  kernel();
  return 0;
}
