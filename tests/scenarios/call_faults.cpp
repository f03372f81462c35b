#include "tests/scenarios/call_faults.hpp"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <poll.h>
#include <string_view>

namespace dsec::test {

namespace {

struct watched_call {
  long number;
  const char* name;
};

#define CALL(name)                                                                                 \
  watched_call {                                                                                   \
    SYS_##name, #name                                                                              \
  }

/// All that makes or changes something on the way to a running sandbox.
constexpr watched_call calls[] = {CALL(clone),
                                  CALL(clone3),
                                  CALL(fork),
                                  CALL(vfork),
                                  CALL(setns),
                                  CALL(unshare),
                                  CALL(open),
                                  CALL(openat),
                                  CALL(openat2),
                                  CALL(open_tree),
                                  CALL(mkdir),
                                  CALL(mkdirat),
                                  CALL(mknodat),
                                  CALL(symlinkat),
                                  CALL(rename),
                                  CALL(renameat),
                                  CALL(renameat2),
                                  CALL(socket),
                                  CALL(socketpair),
                                  CALL(bind),
                                  CALL(listen),
                                  CALL(accept4),
                                  CALL(connect),
                                  CALL(sendmsg),
                                  CALL(pipe2),
                                  CALL(memfd_create),
                                  CALL(eventfd2),
                                  CALL(timerfd_create),
                                  CALL(signalfd4),
                                  CALL(epoll_create1),
                                  CALL(epoll_ctl),
                                  CALL(pidfd_open),
                                  CALL(mount),
                                  CALL(fsopen),
                                  CALL(fsconfig),
                                  CALL(fsmount),
                                  CALL(move_mount),
                                  CALL(mount_setattr),
                                  CALL(pivot_root),
                                  CALL(chdir),
                                  CALL(fchown),
                                  CALL(fchownat),
                                  CALL(fchmod),
                                  CALL(fchmodat),
                                  CALL(ioctl),
                                  CALL(flock),
                                  CALL(fcntl),
                                  CALL(dup2),
                                  CALL(dup3),
                                  CALL(sethostname),
                                  CALL(setgroups),
                                  CALL(setresuid),
                                  CALL(setresgid),
                                  CALL(capset),
                                  CALL(prctl),
                                  CALL(seccomp),
                                  CALL(landlock_create_ruleset),
                                  CALL(landlock_add_rule),
                                  CALL(landlock_restrict_self),
                                  CALL(ftruncate),
                                  CALL(write),
                                  CALL(pwrite64),
                                  CALL(writev)};

#undef CALL

const char* name_of(long number) {
  auto found = std::find_if(std::begin(calls), std::end(calls),
                            [&](const watched_call& x) { return x.number == number; });
  return found == std::end(calls) ? "?" : found->name;
}

constexpr std::size_t filter_size = 4 + 2 * std::size(calls);

void fill(sock_filter (&program)[filter_size]) {
  std::size_t at = 0;
  program[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  program[at++] =
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 2 * std::size(calls) + 1);
  program[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const auto& call : calls) {
    program[at++] =
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call.number), 0, 1);
    program[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  }
  program[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

std::string program_of(std::uint32_t process) {
  std::ifstream in{fmt::format("/proc/{}/comm", process)};
  std::string name;
  std::getline(in, name);
  return name;
}

/// What the child leaves for its parent: the listener's number, or minus an errno value.
using note = std::atomic<int>;

/// In the child, between fork and exec.
[[noreturn]] void
become(const std::vector<char*>& argv, const sock_fprog& filter, note& number, int told, int go) {
  long listener =
    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
              SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
  number = listener < 0 ? -errno : static_cast<int>(listener);
  // From here on nothing may be called that the filter holds back before somebody listens.
  ::close(told);
  char byte;
  (void)!::read(go, &byte, 1);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

} // namespace

call_faults::call_faults(const std::vector<std::string>& argv)
  : end_{bench::checked(::eventfd(0, EFD_CLOEXEC), "make an event")} {
  sock_filter program[filter_size];
  fill(program);
  sock_fprog filter{static_cast<unsigned short>(filter_size), program};
  std::vector<char*> words;
  for (const auto& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int told[2], go[2];
  bench::checked(::pipe2(told, O_CLOEXEC), "make a pipe");
  bench::checked(::pipe2(go, O_CLOEXEC), "make a pipe");
  auto* number = static_cast<note*>(
    ::mmap(nullptr, sizeof(note), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto pid = bench::checked(::fork(), "fork");
  if (pid == 0) {
    ::close(told[0]);
    ::close(go[1]);
    become(words, filter, *number, told[1], go[0]);
  }
  ::close(told[1]);
  ::close(go[0]);
  char byte;
  (void)!::read(told[0], &byte, 1);
  ::close(told[0]);
  const int theirs = *number;
  ::munmap(number, sizeof(note));
  if (theirs < 0) {
    errno = -theirs;
    bench::checked(-1, "install the filter");
  }
  const bench::fd process{
    bench::checked(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), "open the child")};
  listener_ =
    bench::fd{bench::checked(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), theirs, 0)),
                             "take the listener")};
  thread_ = std::thread{[this] {
    watch();
  }};
  ::close(go[1]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

call_faults::~call_faults() {
  ::eventfd_write(end_.get(), 1);
  thread_.join();
}

void call_faults::arm(std::uint64_t n, int number) {
  std::scoped_lock lock{mutex_};
  fails_at_ = n;
  number_ = number;
  seen_ = {};
}

call_faults::outcome call_faults::disarm() {
  std::scoped_lock lock{mutex_};
  fails_at_ = 0;
  return seen_;
}

int call_faults::verdict(std::uint32_t process, int call) {
  std::scoped_lock lock{mutex_};
  if (fails_at_ == 0 || ++seen_.counted != fails_at_)
    return 0;
  seen_.failed = fmt::format("{} of {}", name_of(call), program_of(process));
  return number_;
}

void call_faults::watch() {
  for (;;) {
    pollfd ready[] = {{listener_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR)
      return;
    if (ready[1].revents != 0 || (ready[0].revents & POLLHUP) != 0)
      return;
    if ((ready[0].revents & POLLIN) == 0)
      continue;
    seccomp_notif asked{};
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
      continue; // Whoever called has been killed meanwhile.
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.error = -verdict(asked.pid, asked.data.nr);
    if (answer.error == 0)
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

} // namespace dsec::test
