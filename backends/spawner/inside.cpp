#include "backends/spawner/inside.hpp"

#include "backends/init/confine.hpp"
#include "backends/init/reaper_protocol.hpp"
#include "backends/kill_point.hpp"
#include "backends/spawner/worker.hpp"

#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <grp.h>

namespace dsec::spawner {

namespace {

constexpr unsigned quiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

class build {
public:
  explicit build(int report) : report_{report} {}

  /// Every step goes through here: what failed is told and ends the process.
  void step(const char* stage, bool done) const {
    kill_point(crash_role::spawner);
    if (!done)
      fail(stage, errno);
  }

  [[noreturn]] void fail(const char* stage, int number) const {
    inside_failure failure{};
    std::strncpy(failure.stage, stage, sizeof failure.stage - 1);
    failure.number = number;
    (void)!::write(report_, &failure, sizeof failure);
    ::_exit(1);
  }

  descriptor mount_of(const char* type,
                      std::initializer_list<std::pair<const char*, std::string>> set,
                      unsigned attributes) const {
    descriptor context{::fsopen(type, FSOPEN_CLOEXEC)};
    bool ok = static_cast<bool>(context);
    for (auto& [key, value] : set)
      ok = ok && ::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0;
    ok = ok && ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
    descriptor mount{ok ? ::fsmount(context.get(), FSMOUNT_CLOEXEC, attributes) : -1};
    step(type, static_cast<bool>(mount));
    return mount;
  }

  /// Attaches a mount to a directory of another. The path follows no link of the image.
  void attach(const descriptor& mount, int root, const char* target) const {
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
    auto open = [&] {
      return static_cast<int>(::syscall(SYS_openat2, root, target, &how, sizeof how));
    };
    descriptor point{open()};
    if (!point && errno == ENOENT && ::mkdirat(root, target, 0755) == 0)
      point.reset(open());
    step(target, point
                   && ::move_mount(mount.get(), "", point.get(), "",
                                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
                        == 0);
  }

  /// Attaches a mount to be the next root; `place` is a directory that everybody may search.
  void attach_root(const descriptor& mount, const char* place) const {
    step("attach a root",
         ::move_mount(mount.get(), "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) == 0);
  }

  /// Makes what is mounted at `place` the root and lets go of the old one.
  void pivot(const char* place) const {
    step("pivot to a root", ::chdir(place) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0
                              && ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0);
  }

private:
  int report_;
};

/// Kernel files that tell about, or reach, more than the sandbox. Those that this kernel lacks are
/// skipped. Each mask costs a create 5 us.
///
/// Not masked, since it is no file of its own: /proc/self/cgroup. A command is in groups that did
/// not exist when PID 1 was cloned, so of the v1 hierarchies its cgroup namespace shows the name
/// and slot that the spawner gave them; not where they are, nor whose. Entering them and leaving
/// again around an unshare takes 50 us of every create, and shows PID 1 in the spawner's groups.
void mask_kernel_files(const build& b) {
  for (auto* file :
       {"/proc/kcore",       "/proc/keys",       "/proc/key-users",     "/proc/kpagecgroup",
        "/proc/kpagecount",  "/proc/kpageflags", "/proc/sysrq-trigger", "/proc/timer_list",
        "/proc/kmsg",        "/proc/kallsyms",   "/proc/sched_debug",   "/proc/latency_stats",
        "/proc/vmallocinfo", "/proc/slabinfo",   "/proc/modules",       "/proc/swaps",
        "/proc/cmdline",     "/proc/interrupts", "/proc/diskstats",     "/proc/config.gz"})
    b.step(file, ::mount("/dev/null", file, nullptr, MS_BIND, nullptr) == 0 || errno == ENOENT);
  for (auto* folder : {"/proc/acpi", "/proc/scsi", "/proc/asound"})
    b.step(folder, ::access(folder, F_OK) < 0
                     || ::mount("dsec-masked", folder, "tmpfs",
                                MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=000")
                          == 0);
  for (auto* folder : {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"}) {
    if (::mount(folder, folder, nullptr, MS_BIND | MS_REC, nullptr) < 0) {
      b.step(folder, errno == ENOENT);
      continue;
    }
    b.step(folder,
           ::mount(nullptr, folder, nullptr,
                   MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr)
             == 0);
  }
}

void limit_self() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(1024, files.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &files);
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

/// Handlers go with the exec; what is ignored and what is blocked would stay.
void reset_signals() {
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

} // namespace

void become_reaper(int socket, int report, int program) {
  build b{report};
  std::string message;
  descriptor devices;
  b.step("wait for the id maps", receive_datagram(socket, message, &devices, 0) && devices);
  b.step("become root inside",
         ::setgroups(0, nullptr) == 0 && ::setresgid(0, 0, 0) == 0 && ::setresuid(0, 0, 0) == 0);
  int forbidden = init::forbid_user_namespaces();
  errno = forbidden;
  b.step("forbid user namespaces", forbidden == 0);
  b.step("make mounts private", ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  // The kernel lets nobody mount proc who cannot see one whole already, so this comes before the
  // pivot.
  auto proc = b.mount_of("proc", {}, quiet);
  auto terminals = b.mount_of("devpts", {{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}},
                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  auto queues = b.mount_of("mqueue", {}, quiet);
  const char* place = "/sys";
  if (message == root_comes_late) {
    // A root of its own until then: a blank sandbox must not hold on to the mounts of the machine.
    auto first = b.mount_of("tmpfs", {{"mode", "0755"}, {"size", "16k"}}, quiet);
    b.step("make the first root", ::mkdirat(first.get(), "root", 0755) == 0);
    b.attach_root(first, place);
    b.pivot(place);
    place = "/root";
  }

  descriptor root;
  inside_order order{};
  if (!receive_datagram(socket, message, &root, 0))
    ::_exit(0); // Never asked for.
  b.step("read the order", root && message.size() == sizeof order);
  std::memcpy(&order, message.data(), sizeof order);
  auto shared_memory =
    b.mount_of("tmpfs", {{"mode", "1777"}, {"size", std::to_string(order.memory_bytes / 2)}},
               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  b.attach_root(root, place);
  b.attach(proc, root.get(), "proc");
  b.attach(devices, root.get(), "dev");
  b.attach(terminals, devices.get(), "pts");
  b.attach(queues, devices.get(), "mqueue");
  b.attach(shared_memory, devices.get(), "shm");
  b.pivot(place);
  mask_kernel_files(b);

  limit_self();
  reset_signals();
  ::setsid();
  ::umask(022);
  constexpr int kept_from = 10;
  int held = ::fcntl(report, F_DUPFD_CLOEXEC, kept_from);
  int image = ::fcntl(program, F_DUPFD_CLOEXEC, kept_from);
  b.step("place the socket",
         held >= 0 && image >= 0 && ::dup2(socket, init::reaper::socket_fd) >= 0);
  build last{held};
  ::close_range(0, 2, 0);
  close_all_but({init::reaper::socket_fd, held, image});
  const char* stage = "confine";
  if (int number = init::confine_payload(order.allow_setuid, &stage); number != 0)
    last.fail(stage, number);
  ::prctl(PR_SET_DUMPABLE, 0);
  char name[] = "dsec-reaper";
  char* arguments[] = {name, nullptr};
  char* variables[] = {nullptr};
  ::syscall(SYS_execveat, image, "", arguments, variables, AT_EMPTY_PATH);
  last.fail("start the reaper", errno);
}

} // namespace dsec::spawner
