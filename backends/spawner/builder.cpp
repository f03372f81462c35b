#include "backends/spawner/builder.hpp"

#include "backends/init/launch.hpp"
#include "backends/kill_point.hpp"
#include "backends/spawner/inside.hpp"
#include "backends/spawner/lock_file.hpp"
#include "backends/spawner/network_pool.hpp"
#include "backends/spawner/overlay.hpp"
#include "backends/spawner/wire.hpp"
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
#include <optional>
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

/// Under the slot's name, until there is an id.
result<descriptor> listen_at(const machine& on, std::uint32_t slot) {
  auto name = slot_name(slot) + ".sock";
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
  builder(const machine& on, std::uint32_t slot)
    : on_{on},
      slot_{slot},
      name_{slot_name(slot)},
      watch_{on.trace} {}

  /// Everything that no request is needed for.
  result<void> prepare(int network, bool root_comes_now);

  /// Root and limits: all that differs between environments.
  result<void> furnish(const create_order& order);

  /// What dsec-init takes over.
  init::launch finish(const create_order& order);

  /// The host name's namespace, for the spawner.
  const descriptor& host_name() const {
    return host_name_;
  }

  void lap(const char* stage) {
    watch_.lap(stage);
  }

  const std::string& laps() const {
    return watch_.text();
  }

private:
  result<void> start_inside(int network, const char* when_root_comes);
  result<void> hand_over_root(const create_order& order);

  const machine& on_;
  std::uint32_t slot_;
  std::string name_;
  stopwatch watch_;
  descriptor lock_;
  descriptor scratch_;
  payload_groups groups_;
  descriptor socket_;
  descriptor failures_;
  descriptor pidfd_;
  descriptor user_namespace_;
  descriptor host_name_;
  descriptor listener_;
  pid_t pid_ = -1;
};

/// Clones PID 1 with all its namespaces. The network namespace is entered for the moment of the
/// clone, so that it stays the host's and not the sandbox's to change.
result<void> builder::start_inside(int network, const char* when_root_comes) {
  descriptor host{::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)};
  if (!host)
    return errno_error(errno, "open the host's network namespace");
  at_effect();
  int failed =
    network >= 0 ? (::setns(network, CLONE_NEWNET) < 0 ? errno : 0) : enter_new_network();
  if (failed != 0)
    return errno_error(failed, "enter the network namespace of " + name_);
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
    return errno_error(errno, "clone PID 1 of " + name_);
  if (pid == 0) {
    socket_.reset();
    become_reaper(theirs.get(), report.get(), on_.program.get());
  }
  at_effect();
  pid_ = pid;
  pidfd_.reset(pidfd);
  watch_.lap("clone");
  if (::setns(host.get(), CLONE_NEWNET) < 0)
    return errno_error(errno, "return to the host's network namespace");
  if (auto mapped = map_ids(pid_, on_.where.base_id(slot_)); !mapped)
    return mapped;
  auto namespaces = "/proc/" + std::to_string(pid_) + "/ns/";
  user_namespace_.reset(::open((namespaces + "user").c_str(), O_RDONLY | O_CLOEXEC));
  host_name_.reset(::open((namespaces + "uts").c_str(), O_RDONLY | O_CLOEXEC));
  if (!user_namespace_ || !host_name_)
    return errno_error(errno, "open the namespaces of " + name_);
  auto devices = idmapped_copy(on_.mounts.devices(), user_namespace_.get(), "the device tree");
  if (!devices)
    return devices.error();
  if (int number = send_datagram(socket_.get(), when_root_comes, devices->get(), 0); number != 0)
    return errno_error(number, "hand the device tree to PID 1 of " + name_);
  watch_.lap("maps");
  return {};
}

result<void> builder::hand_over_root(const create_order& order) {
  std::vector<descriptor> lower;
  for (auto& digest : order.layers) {
    auto mount = on_.mounts.layer(digest);
    if (!mount)
      return mount.error();
    auto copy = idmapped_copy(mount->get(), user_namespace_.get(), "layer " + digest);
    if (!copy)
      return copy.error();
    lower.push_back(*std::move(copy));
  }
  watch_.lap("layers");
  auto root = overlay(lower, scratch_.get(), on_.where.run("layers"));
  if (!root)
    return root.error();
  inside_order rest{};
  rest.memory_bytes = order.memory_bytes;
  rest.allow_setuid = order.allow_setuid;
  std::string_view bytes{reinterpret_cast<const char*>(&rest), sizeof rest};
  if (int number = send_datagram(socket_.get(), bytes, root->get(), 0); number != 0)
    return errno_error(number, "hand the root to PID 1 of " + name_);
  watch_.lap("overlay");
  return {};
}

result<void> builder::prepare(int network, bool root_comes_now) {
  at_effect();
  lock_ = take_lock(on_.run_dir.get(), name_, {slot_, ::getpid(), false});
  if (!lock_)
    return errno_error(errno, "take the lock of " + name_);
  at_effect();
  watch_.lap("lock");
  if (auto ok = start_inside(network, root_comes_now ? root_comes_soon : root_comes_late); !ok)
    return ok.error();
  auto made = on_.disk.make(slot_, on_.where.base_id(slot_));
  if (!made)
    return made.error();
  scratch_ = *std::move(made);
  watch_.lap("scratch");
  auto groups = on_.groups.make_payload(slot_, on_.where.base_id(slot_));
  if (!groups)
    return groups.error();
  groups_ = *std::move(groups);
  watch_.lap("groups");
  auto listener = listen_at(on_, slot_);
  if (!listener)
    return listener.error();
  listener_ = *std::move(listener);
  watch_.lap("listen");
  return {};
}

result<void> builder::furnish(const create_order& order) {
  if (auto ok = scratch::limit(scratch_.get(), order.disk_bytes); !ok)
    return ok;
  if (auto ok = hand_over_root(order); !ok)
    return ok;
  if (auto ok = cgroups::limit(groups_, {order.memory_bytes, order.processes, order.cpu_milli});
      !ok)
    return ok;
  watch_.lap("limits");
  if (auto ok = wait_for_reaper(failures_.get(), pid_); !ok)
    return ok;
  watch_.lap("inside");
  return {};
}

init::launch builder::finish(const create_order& order) {
  init::launch given;
  given.listener = listener_.release();
  given.reaper_socket = socket_.release();
  given.reaper_pidfd = pidfd_.release();
  given.reaper_pid = pid_;
  given.lock = lock_.release();
  given.run_dir = ::openat(on_.run_dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  given.scratch_dir = scratch_.release();
  given.payload_v2 = groups_.unified.release();
  given.memory_v1 = groups_.memory.release();
  given.pids_v1 = groups_.pids.release();
  given.cpu_v1 = groups_.cpu.release();
  given.memory_bytes = order.memory_bytes;
  given.processes = order.processes;
  given.cpu_milli = order.cpu_milli;
  given.disk_bytes = order.disk_bytes;
  return given;
}

void tell(int spawner, std::uint8_t code, const std::string& text, int beside = -1) {
  build_report message{};
  message.code = code;
  auto size = std::min(text.size(), sizeof message.text - 1);
  std::memcpy(message.text, text.data(), size);
  (void)send_datagram(spawner, {reinterpret_cast<const char*>(&message), 1 + size}, beside, 0);
}

[[noreturn]] void fail(int spawner, const error& why) {
  tell(spawner, static_cast<std::uint8_t>(why.code), why.message);
  ::_exit(1);
}

/// Waits for the request; ends the process when there will be none.
create_order wait_for_order(int spawner) {
  // Its size first: what is allocated here, dsec-init keeps.
  auto size = ::recv(spawner, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  std::string datagram;
  if (size <= 0 || !receive_datagram(spawner, datagram, nullptr, 0, static_cast<std::size_t>(size)))
    ::_exit(0);
  auto asked = read_request(datagram);
  if (!asked || !asked->what)
    fail(spawner, asked ? asked->what.error() : asked.error());
  return std::get<create_order>(*std::move(asked->what));
}

} // namespace

void build_sandbox(const machine& on, std::uint32_t slot, int network, int spawner,
                   const create_order* likely) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_NAME, "dsec-init");
  close_all_but({on.run_dir.get(), on.disk.directory(), on.mounts.devices(), on.mounts.layers(),
                 on.program.get(), network, spawner});
  builder b{on, slot};
  if (auto prepared = b.prepare(network, likely != nullptr); !prepared)
    fail(spawner, prepared.error());
  std::optional<create_order> order;
  if (!likely) {
    tell(spawner, 0, "", b.host_name().get());
    order = wait_for_order(spawner);
  }
  auto& environment = likely ? *likely : *order;
  if (auto furnished = b.furnish(environment); !furnished)
    fail(spawner, furnished.error());
  auto given = b.finish(environment);
  given.for_assigning = {spawner, b.host_name().get()};
  close_all_but({given.listener, given.reaper_socket, given.reaper_pidfd, given.lock, given.run_dir,
                 given.scratch_dir, given.payload_v2, given.memory_v1, given.pids_v1, given.cpu_v1,
                 spawner, b.host_name().get()});
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int lock = given.lock;
  init::supervise(std::move(given), [&](const result<void>& complete) {
    if (!complete)
      fail(spawner, complete.error());
    b.lap("dsec-init");
    if (!order) {
      tell(spawner, 0, "", b.host_name().get());
      order = wait_for_order(spawner);
    }
    at_effect();
    // Without it the next spawner would take this sandbox for one that was never finished.
    if (int number = write_lock(lock, {slot, ::getpid(), true}); number != 0)
      fail(spawner, errno_error(number, "say in the lock of " + order->id + " that it lives"));
    at_effect();
    tell(spawner, 0, b.laps());
    return init::assignment{order->id,
                            order->pause_after_ms,
                            order->stop_after_ms,
                            order->time_to_live_ms,
                            order->rollout_budget_ms,
                            order->age_ms};
  });
}

} // namespace dsec::spawner
