#include "backends/spawner/builder.hpp"

#include "backends/init/launch.hpp"
#include "backends/kill_point.hpp"
#include "backends/spawner/inside.hpp"
#include "backends/spawner/lock_file.hpp"
#include "backends/spawner/network_pool.hpp"
#include "backends/spawner/worker.hpp"

#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sched.h>

namespace dsec::spawner {

namespace {

void at_effect() {
  kill_point(crash_role::spawner);
}

class stopwatch {
public:
  explicit stopwatch(bool on) : on_{on}, last_{now()} {}

  void lap(const char* stage) {
    if (!on_)
      return;
    auto at = now();
    text_ +=
      std::string{text_.empty() ? "" : " "} + stage + ' ' + std::to_string((at - last_) / 1000);
    last_ = at;
  }

  const std::string& text() const {
    return text_;
  }

private:
  static std::int64_t now() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000ll + t.tv_nsec;
  }

  bool on_;
  std::int64_t last_;
  std::string text_;
};

result<void> map_ids(pid_t pid, uid_t base) {
  auto map = "0 " + std::to_string(base) + ' ' + std::to_string(ids_per_slot);
  for (auto* name : {"uid_map", "gid_map"}) {
    auto path = "/proc/" + std::to_string(pid) + '/' + name;
    descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    at_effect();
    if (!file || ::write(file.get(), map.data(), map.size()) < 0)
      return errno_error(errno, "write '" + map + "' to " + path);
    at_effect();
  }
  return {};
}

result<descriptor> listen_at(const machine& on, const std::string& id) {
  auto name = id + ".sock";
  ::unlinkat(on.run_dir.get(), name.c_str(), 0);
  descriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // By descriptor, since a socket's path is short and a run directory's may be long.
  auto path = "/proc/self/fd/" + std::to_string(on.run_dir.get()) + '/' + name;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ::umask(0177);
  at_effect();
  bool bound = listener
               && ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0
               && ::listen(listener.get(), 64) == 0;
  int number = errno;
  ::umask(022);
  if (!bound)
    return errno_error(number, "listen on " + on.where.run(name));
  at_effect();
  return listener;
}

/// Waits until the reaper's program runs or the inside has told why not.
result<void> wait_for_reaper(int failures, pid_t pid) {
  inside_failure failure{};
  ssize_t size;
  do
    size = ::read(failures, &failure, sizeof failure);
  while (size < 0 && errno == EINTR);
  if (size == static_cast<ssize_t>(sizeof failure)) {
    failure.stage[sizeof failure.stage - 1] = '\0';
    return errno_error(failure.number, std::string{"build sandbox, inside: "} + failure.stage);
  }
  siginfo_t gone{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &gone, WEXITED | WNOHANG | WNOWAIT) == 0
      && gone.si_pid == pid)
    return error{errc::unavailable, "build sandbox: its PID 1 died before it started"};
  return {};
}

class builder {
public:
  builder(const machine& on, const create_order& order, std::uint32_t slot)
    : on_{on},
      order_{order},
      slot_{slot},
      watch_{on.trace} {}

  result<init::launch> build(int network);

  void mark_live() {
    write_lock(lock_.get(), {slot_, ::getpid(), true});
    at_effect();
  }

  const std::string& laps() const {
    return watch_.text();
  }

private:
  result<void> start_inside(int network);
  result<void> hand_over_root();

  const machine& on_;
  const create_order& order_;
  std::uint32_t slot_;
  stopwatch watch_;
  descriptor lock_;
  descriptor scratch_;
  descriptor socket_;
  descriptor failures_;
  descriptor pidfd_;
  descriptor user_namespace_;
  pid_t pid_ = -1;
};

/// Clones PID 1 with all its namespaces. The network namespace is entered for the moment of the
/// clone, so that it stays the host's and not the sandbox's to change.
result<void> builder::start_inside(int network) {
  descriptor host{::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)};
  if (!host)
    return errno_error(errno, "open the host's network namespace");
  at_effect();
  int failed =
    network >= 0 ? (::setns(network, CLONE_NEWNET) < 0 ? errno : 0) : enter_new_network();
  if (failed != 0)
    return errno_error(failed, "enter the network namespace of " + order_.id);
  at_effect();
  watch_.lap("network");
  int pair[2];
  int pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0
      || ::pipe2(pipe, O_CLOEXEC) < 0)
    return errno_error(errno, "make the reaper's socket");
  descriptor theirs{pair[1]};
  descriptor report{pipe[1]};
  socket_.reset(pair[0]);
  failures_.reset(pipe[0]);
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS
                    | CLONE_NEWCGROUP | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  at_effect();
  auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0)
    return errno_error(errno, "clone PID 1 of " + order_.id);
  if (pid == 0) {
    socket_.reset();
    become_reaper(order_, theirs.get(), report.get(), on_.program.get());
  }
  at_effect();
  pid_ = pid;
  pidfd_.reset(pidfd);
  watch_.lap("clone");
  if (::setns(host.get(), CLONE_NEWNET) < 0)
    return errno_error(errno, "return to the host's network namespace");
  if (auto mapped = map_ids(pid_, on_.where.base_id(slot_)); !mapped)
    return mapped;
  user_namespace_.reset(
    ::open(("/proc/" + std::to_string(pid_) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!user_namespace_)
    return errno_error(errno, "open the user namespace of " + order_.id);
  auto devices = idmapped_copy(on_.mounts.devices(), user_namespace_.get(), "the device tree");
  if (!devices)
    return devices.error();
  if (int number = send_datagram(socket_.get(), "devices", devices->get(), 0); number != 0)
    return errno_error(number, "hand the device tree to PID 1 of " + order_.id);
  watch_.lap("maps");
  return {};
}

result<void> builder::hand_over_root() {
  std::vector<descriptor> lower;
  for (auto& digest : order_.layers) {
    auto mount = on_.mounts.layer(digest);
    if (!mount)
      return mount.error();
    auto copy = idmapped_copy(mount->get(), user_namespace_.get(), "layer " + digest);
    if (!copy)
      return copy.error();
    lower.push_back(*std::move(copy));
  }
  watch_.lap("layers");
  auto root = overlay(lower, scratch_.get());
  if (!root)
    return root.error();
  if (int number = send_datagram(socket_.get(), "root", root->get(), 0); number != 0)
    return errno_error(number, "hand the root to PID 1 of " + order_.id);
  watch_.lap("overlay");
  return {};
}

/// Whatever the inside does not need at once is done while it is at work.
result<init::launch> builder::build(int network) {
  at_effect();
  lock_ = take_lock(on_.run_dir.get(), order_.id, {slot_, ::getpid(), false});
  if (!lock_)
    return errno_error(errno, "take the lock of " + order_.id);
  at_effect();
  ::unlinkat(on_.run_dir.get(), (order_.id + ".end").c_str(), 0);
  watch_.lap("lock");
  if (auto ok = start_inside(network); !ok)
    return ok.error();
  auto made = on_.disk.make(order_.id, on_.where.base_id(slot_), order_.disk_bytes);
  if (!made)
    return made.error();
  scratch_ = *std::move(made);
  watch_.lap("scratch");
  if (auto ok = hand_over_root(); !ok)
    return ok.error();
  auto groups =
    on_.groups.make_payload(order_.id, {order_.memory_bytes, order_.processes, order_.cpu_milli});
  if (!groups)
    return groups.error();
  watch_.lap("groups");
  auto listener = listen_at(on_, order_.id);
  if (!listener)
    return listener.error();
  watch_.lap("listen");
  if (auto ok = wait_for_reaper(failures_.get(), pid_); !ok)
    return ok.error();
  watch_.lap("inside");

  init::launch given;
  given.sandbox_id = order_.id;
  given.listener = listener->release();
  given.reaper_socket = socket_.release();
  given.reaper_pidfd = pidfd_.release();
  given.reaper_pid = pid_;
  given.run_dir = ::openat(on_.run_dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  given.scratch_dir = scratch_.release();
  given.payload_v2 = groups->unified.release();
  given.memory_v1 = groups->memory.release();
  given.pids_v1 = groups->pids.release();
  given.cpu_v1 = groups->cpu.release();
  given.memory_bytes = order_.memory_bytes;
  given.processes = order_.processes;
  given.disk_bytes = order_.disk_bytes;
  given.pause_after_ms = order_.pause_after_ms;
  given.stop_after_ms = order_.stop_after_ms;
  mark_live();
  given.lock = lock_.release();
  return given;
}

void tell(int report, std::uint8_t code, const std::string& text) {
  build_report message{};
  message.code = code;
  auto size = std::min(text.size(), sizeof message.text - 1);
  std::memcpy(message.text, text.data(), size);
  (void)!::write(report, &message, 1 + size);
}

} // namespace

void build_sandbox(const machine& on, const create_order& order, std::uint32_t slot, int network,
                   int report) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_NAME, "dsec-init");
  close_all_but({on.run_dir.get(), on.disk.directory(), on.mounts.devices(), on.mounts.layers(),
                 on.program.get(), network, report});
  init::launch given;
  {
    builder b{on, order, slot};
    auto built = b.build(network);
    if (!built) {
      tell(report, static_cast<std::uint8_t>(built.error().code), built.error().message);
      ::_exit(1);
    }
    given = *std::move(built);
    tell(report, 0, b.laps());
  }
  close_all_but({given.listener, given.reaper_socket, given.reaper_pidfd, given.lock, given.run_dir,
                 given.scratch_dir, given.payload_v2, given.memory_v1, given.pids_v1,
                 given.cpu_v1});
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  init::supervise(std::move(given));
}

} // namespace dsec::spawner
