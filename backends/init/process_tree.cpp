#include "backends/init/process_tree.hpp"

#include <sys/syscall.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace dsec::init {

namespace {

/// A tree that forks faster than this is followed no further.
constexpr int looks_max = 16;

/// Whether a file told of a change may have been missed.
constexpr auto look_again = 50 * kj::MILLISECONDS;

result<std::set<pid_t>> members(const exec_group& group) {
  const kj::AutoCloseFd list{::openat(group.directory(), "cgroup.procs", O_RDONLY | O_CLOEXEC)};
  if (list.get() < 0)
    return errno_error(errno, "read the processes of group " + group.name());
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto n = ::read(list, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno_error(errno, "read the processes of group " + group.name());
    if (n == 0)
      break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  std::set<pid_t> all;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    pid_t pid = 0;
    const auto [next, failed] = std::from_chars(at, end, pid);
    if (failed == std::errc{} && pid > 0)
      all.insert(pid);
    at = next + 1;
  }
  return all;
}

} // namespace

result<void> signal_tree(const exec_group& group, int number) {
  std::set<pid_t> told;
  for (int look = 0; look < looks_max; ++look) {
    auto found = members(group);
    if (!found)
      return found.error();
    std::set<pid_t> held;
    std::vector<kj::AutoCloseFd> handles;
    for (auto pid : *found) {
      if (told.contains(pid))
        continue;
      kj::AutoCloseFd handle{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
      if (handle.get() < 0)
        continue; // Gone meanwhile.
      held.insert(pid);
      handles.push_back(kj::mv(handle));
    }
    if (held.empty())
      return {};
    // Who is still in the group now is who the handle was opened for: a pid does not come back
    // while its handle is open.
    const auto still = members(group);
    if (!still)
      return still.error();
    auto pid = held.begin();
    for (const auto& handle : handles) {
      if (still->contains(*pid)
          && ::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0) != 0
          && errno != ESRCH)
        return errno_error(errno, "signal the processes of group " + group.name());
      told.insert(*pid++);
    }
  }
  return {};
}

kj::Promise<void> tree_gone(kj::UnixEventPort& port, kj::Timer& timer, const exec_group& group,
                            kj::Duration patience) {
  struct watch {
    watch(kj::UnixEventPort& port, kj::Timer& t, const exec_group& g, kj::TimePoint end)
      : timer{t},
        group{g},
        until{end},
        observer{port, g.events(), kj::UnixEventPort::FdObserver::OBSERVE_URGENT} {}

    kj::Timer& timer;
    const exec_group& group;
    kj::TimePoint until;
    kj::UnixEventPort::FdObserver observer;

    kj::Promise<void> look() {
      if (group.empty() || timer.now() >= until)
        return kj::READY_NOW;
      return observer.whenUrgentDataAvailable()
        .exclusiveJoin(timer.afterDelay(look_again))
        .then([this] { return look(); });
    }
  };

  if (group.empty())
    return kj::READY_NOW;
  auto watching = kj::heap<watch>(port, timer, group, timer.now() + patience);
  auto gone = watching->look();
  return gone.attach(kj::mv(watching));
}

} // namespace dsec::init
