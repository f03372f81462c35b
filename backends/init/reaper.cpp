// PID 1 of a sandbox. It starts what dsec-init asks over the socket, with the descriptors it is
// handed, reaps whatever is orphaned to it, and tells how main processes ended. It reads nothing of
// the image, allocates nothing, and ends when dsec-init is gone, which ends the pid namespace with
// it.

#include "backends/init/reaper_path_search.hpp"
#include "backends/init/reaper_protocol.hpp"
#include "backends/init/reaper_syscalls.hpp"

#include <asm/ioctls.h>
#include <linux/close_range.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

// The compiler may call these by itself.
extern "C" void* memcpy(void* to, const void* from, size_t bytes) {
  auto* t = static_cast<unsigned char*>(to);
  auto* f = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < bytes; ++i)
    t[i] = f[i];
  return to;
}

extern "C" void* memset(void* to, int value, size_t bytes) {
  auto* t = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < bytes; ++i)
    t[i] = static_cast<unsigned char>(value);
  return to;
}

namespace {

using namespace dsec::init::reaper;

struct main_process {
  long pid = 0; // 0: the entry is free.
  std::uint64_t exec_id = 0;
};

constinit main_process mains[mains_max];

struct received {
  int fds[descriptors_max];
  std::uint32_t count = 0;
};

/// From the keep_request, and the group that the last spawn named.
struct kept_files {
  int input = -1;
  int births = -1;
  int group = -1;
  int joins[joins_max] = {};
  std::uint32_t join_count = 0;
  int group_joins[group_joins_max] = {};
  std::uint32_t group_join_count = 0;
};

// Nothing runs constructors here.
constinit kept_files kept;

struct datagram {
  constexpr datagram() : head{}, block{} {}

  union {
    unsigned char head[sizeof(spawn_request)];
    verb what;
    keep_request keep;
    spawn_request spawn;
    signal_request signal;
  };

  char block[inline_bytes_max];
};

constinit datagram request;

/// Of a child, for an inline block: no string is shorter than its NUL.
char* pointers[inline_bytes_max + 2];

void tell(verb what, std::uint64_t exec_id, int value, stage where = stage::none, long pid = 0) {
  event message;
  message.what = what;
  message.value = value;
  message.exec_id = exec_id;
  message.where = where;
  message.pid = static_cast<std::int32_t>(pid);
  long sent;
  do
    sent = call(SYS_sendto, socket_fd, address(&message), sizeof message, MSG_NOSIGNAL);
  while (sent == -EINTR);
  if (sent < 0)
    leave(0);
}

void close_all(const received& given) {
  for (std::uint32_t i = 0; i < given.count; ++i)
    call(SYS_close, given.fds[i]);
}

// The rest runs in the child, between clone and exec.

[[noreturn]] void fail(stage where, long answer) {
  tell(verb::not_started, request.spawn.exec_id, static_cast<int>(-answer), where,
       call(SYS_getpid));
  leave(127);
}

const char* skip_string(const char* text, const char* end) {
  while (text < end && *text)
    ++text;
  return text < end ? text + 1 : nullptr;
}

/// Fills `to` with `count` pointers and a null; returns what follows the last string, or null.
const char* point_at(char** to, std::uint32_t count, const char* text, const char* end) {
  for (std::uint32_t i = 0; i < count && text; ++i) {
    to[i] = const_cast<char*>(text);
    text = skip_string(text, end);
  }
  to[count] = nullptr;
  return text;
}

/// What a spawn was handed beside its outputs; -1 where it was not.
struct spawn_files {
  int out, err;
  int block = -1, input = -1, status = -1, group = -1;
  int group_joins[group_joins_max] = {};
};

[[noreturn]] void become(const spawn_files& files) {
  const auto& ask = request.spawn;
  // A full socket costs a pid in a message, not a command.
  const birth born{ask.exec_id};
  call(SYS_sendto, kept.births, address(&born), sizeof born, MSG_DONTWAIT | MSG_NOSIGNAL);
  const char* text = request.block;
  char** argv = pointers;
  if (files.block >= 0) {
    long block = call(SYS_mmap, 0, ask.block_bytes, PROT_READ, MAP_PRIVATE, files.block, 0);
    if (block < 0 && block > -4096)
      fail(stage::read_block, block);
    const auto bytes = (std::uint64_t{ask.argument_count} + ask.variable_count + 2) * sizeof(char*);
    long table = call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table < 0 && table > -4096)
      fail(stage::read_block, table);
    text = reinterpret_cast<const char*>(block);
    argv = reinterpret_cast<char**>(table);
  }
  const char* end = text + ask.block_bytes;
  auto** env = argv + ask.argument_count + 1;
  const char* cwd = text;
  const char* rest = skip_string(text, end);
  if (rest)
    rest = point_at(argv, ask.argument_count, rest, end);
  if (rest)
    rest = point_at(env, ask.variable_count, rest, end);
  if (!rest || ask.argument_count == 0)
    fail(stage::read_block, -EBADMSG);

  for (std::uint32_t i = 0; i < kept.join_count; ++i)
    if (long n = call(SYS_write, kept.joins[i], address("0"), 1); n < 0)
      fail(stage::join_group, n);
  for (std::uint32_t i = 0; i < kept.group_join_count; ++i)
    if (long n = call(SYS_write, kept.group_joins[i], address("0"), 1); n < 0)
      fail(stage::join_group, n);
  call(SYS_setsid);
  const int streams[] = {files.input >= 0 ? files.input : kept.input, files.out, files.err};
  for (int i = 0; i < 3; ++i)
    if (long n = call(SYS_dup2, streams[i], i); n < 0)
      fail(stage::standard_streams, n);
  if (ask.flags & has_terminal)
    if (long n = call(SYS_ioctl, 0, TIOCSCTTY, 0); n < 0)
      fail(stage::standard_streams, n);
  if (long n = call(SYS_chdir, address(cwd)); n < 0)
    fail(stage::directory, n);
  if (long n = call(SYS_setgroups, ask.group_count, address(ask.groups)); n < 0)
    fail(stage::identity, n);
  if (long n = call(SYS_setresgid, ask.gid, ask.gid, ask.gid); n < 0)
    fail(stage::identity, n);
  if (long n = call(SYS_setresuid, ask.uid, ask.uid, ask.uid); n < 0)
    fail(stage::identity, n);
  const std::uint64_t none = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, sizeof none);
  fail(stage::execute, execute(argv[0], argv, env));
}

/// False if the descriptors are not those that the flags name.
bool sort_files(const received& given, spawn_files& files) {
  std::uint32_t n = 0;
  auto next = [&] {
    return n < given.count ? given.fds[n++] : (++n, -1);
  };
  const auto flags = request.spawn.flags;
  files.out = next();
  files.err = next();
  if (flags & has_block)
    files.block = next();
  if (flags & has_input)
    files.input = next();
  if (flags & has_status)
    files.status = next();
  if (flags & has_group) {
    files.group = next();
    if (request.spawn.group_join_count > group_joins_max)
      return false;
    for (std::uint32_t i = 0; i < request.spawn.group_join_count; ++i)
      files.group_joins[i] = next();
  }
  return n == given.count;
}

void spawn(const spawn_files& files) {
  if (files.group >= 0) {
    if (kept.group >= 0)
      call(SYS_close, kept.group);
    for (std::uint32_t i = 0; i < kept.group_join_count; ++i)
      call(SYS_close, kept.group_joins[i]);
    kept.group = files.group;
    kept.group_join_count = request.spawn.group_join_count;
    memcpy(kept.group_joins, files.group_joins, sizeof kept.group_joins);
  }
  main_process* entry = nullptr;
  for (auto& m : mains)
    if (m.pid == 0) {
      entry = &m;
      break;
    }
  long pid = -EAGAIN;
  if (entry) {
    // Born in the group: entering it through cgroup.procs would wait for every fork of the machine,
    // and on a calm one for a grace period of RCU, 10 ms and more.
    clone_args how{};
    how.flags = CLONE_INTO_CGROUP;
    how.exit_signal = SIGCHLD;
    how.cgroup = static_cast<std::uint64_t>(kept.group);
    pid = call(SYS_clone3, address(&how), sizeof how);
  }
  if (pid == 0)
    become(files);
  const int handed[] = {files.out, files.err, files.block, files.input, files.status};
  for (int fd : handed)
    if (fd >= 0)
      call(SYS_close, fd);
  if (pid < 0)
    return tell(verb::not_cloned, request.spawn.exec_id, static_cast<int>(-pid));
  entry->pid = pid;
  entry->exec_id = request.spawn.exec_id;
}

void keep(const received& given) {
  kept.input = given.fds[0];
  kept.births = given.fds[1];
  kept.join_count = request.keep.join_count;
  for (std::uint32_t i = 0; i < kept.join_count; ++i)
    kept.joins[i] = given.fds[2 + i];
}

void signal_main(const signal_request& asked) {
  for (auto& m : mains) {
    if (m.pid == 0 || m.exec_id != asked.exec_id)
      continue;
    // It leads the group, or has not come to that yet and is alone.
    if (!asked.whole_group || call(SYS_kill, -m.pid, asked.number) == -ESRCH)
      call(SYS_kill, m.pid, asked.number);
  }
}

void reap() {
  for (;;) {
    int status = 0;
    long pid = call(SYS_wait4, -1, address(&status), WNOHANG | __WALL);
    if (pid <= 0)
      return;
    for (auto& m : mains) {
      if (m.pid != pid)
        continue;
      m.pid = 0;
      if (WIFSIGNALED(status))
        tell(verb::signalled, m.exec_id, WTERMSIG(status), stage::none, pid);
      else
        tell(verb::exited, m.exec_id, WEXITSTATUS(status), stage::none, pid);
      break;
    }
  }
}

/// One request; false when dsec-init is gone.
bool serve() {
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int) * descriptors_max)];
  iovec part{&request, sizeof request};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  long n = call(SYS_recvmsg, socket_fd, address(&message), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n == -EAGAIN || n == -EINTR)
    return true;
  if (n <= 0)
    return false;
  received given;
  auto* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    given.count = static_cast<std::uint32_t>((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(given.fds, CMSG_DATA(header), given.count * sizeof(int));
  }
  const auto size = static_cast<std::size_t>(n);
  if (request.what == verb::spawn && size >= sizeof(spawn_request)
      && request.spawn.group_count <= groups_max) {
    const bool inline_block = !(request.spawn.flags & has_block);
    spawn_files files{};
    if (sort_files(given, files)
        && (!inline_block || size == sizeof(spawn_request) + request.spawn.block_bytes)) {
      spawn(files);
      return true;
    }
  }
  if (request.what == verb::keep && size == sizeof(keep_request) && kept.input < 0
      && request.keep.join_count <= joins_max && given.count == 2 + request.keep.join_count) {
    keep(given);
    return true;
  }
  close_all(given);
  if (request.what == verb::signal && size == sizeof(signal_request))
    signal_main(request.signal);
  return true;
}

} // namespace

extern "C" [[noreturn]] void reaper_main() {
  call(SYS_prctl, PR_SET_DUMPABLE, 0);
  call(SYS_prctl, PR_SET_NAME, address("dsec-reaper"));
  call(SYS_close_range, socket_fd + 1, ~0U, 0);
  call(SYS_fcntl, socket_fd, F_SETFD, FD_CLOEXEC);
  // Received descriptors must never be 0, 1 or 2: a child places its streams there one by one.
  for (int i = 0; i < 3; ++i)
    call(SYS_dup3, socket_fd, i, O_CLOEXEC);
  call(SYS_chdir, address("/"));
  call(SYS_umask, 022);

  // What children inherit. Ignored signals survive an exec, so the spawner's must not be left over.
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    std::uint64_t mask;
  } standard{};

  for (int number = 1; number <= 64; ++number)
    call(SYS_rt_sigaction, number, address(&standard), 0, sizeof standard.mask);
  const rlimit no_core{0, 0};
  call(SYS_prlimit64, 0, RLIMIT_CORE, address(&no_core), 0);

  const std::uint64_t child_ended = 1UL << (SIGCHLD - 1);
  call(SYS_rt_sigprocmask, SIG_SETMASK, address(&child_ended), 0, sizeof child_ended);
  const long signals =
    call(SYS_signalfd4, -1, address(&child_ended), sizeof child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0)
    leave(1);
  tell(verb::ready, 0, 0);

  pollfd wanted[2] = {{socket_fd, POLLIN, 0}, {static_cast<int>(signals), POLLIN, 0}};
  for (;;) {
    call(SYS_ppoll, address(wanted), 2, 0, 0, 0);
    if (wanted[1].revents) {
      // One at most: a standard signal does not queue.
      signalfd_siginfo drained;
      call(SYS_read, signals, address(&drained), sizeof drained);
      reap();
    }
    if (wanted[0].revents && !serve())
      leave(0);
  }
}

// The kernel enters with an unaligned frame of its own.
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  and $-16, %rsp\n  call reaper_main\n");
