#include "backends/kill_point.hpp"
#include "backends/spawner/builder.hpp"
#include "backends/spawner/naming.hpp"
#include "backends/spawner/sandboxes.hpp"

#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace dsec::spawner {

namespace {

/// After a create, until its first command has likely answered.
constexpr auto quiet_time = std::chrono::milliseconds{5};

/// Forks into a cgroup. Raw, as glibc has no call for it; the spawner has one thread.
pid_t fork_into(int group) {
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(group);
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

} // namespace

bool sandboxes::blanks_missing() const {
  return refilling_ && building_ == 0 && queue_.empty()
         && making_.size() + ready_.size() < blanks_wanted_;
}

bool sandboxes::quiet() const {
  return std::chrono::steady_clock::now() - created_at_ >= quiet_time
         || making_.size() + ready_.size() < blanks_wanted_ / 2;
}

int sandboxes::refill_ms() const {
  if (!blanks_missing() || quiet())
    return -1; // What is being made comes back as an event.
  auto left = created_at_ + quiet_time - std::chrono::steady_clock::now();
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::max<std::int64_t>(ms, 0)) + 1;
}

void sandboxes::refill() {
  // Two at a time keep both halves of a small machine busy and leave room for a create that comes.
  constexpr std::size_t making_max = 2;
  while (blanks_missing() && quiet() && making_.size() < making_max)
    if (auto made = make_blank(likely_); !made) {
      log_.line("sandbox.no_blank", made.error().message);
      refilling_ = false;
    }
}

void sandboxes::retire() {
  refilling_ = false;
  auto blanks = ready_;
  blanks.insert(making_.begin(), making_.end());
  for (auto serial : blanks)
    kill(*find(serial), std::nullopt);
}

sandboxes::sandbox* sandboxes::pick_blank(const create_order& order) {
  sandbox* other = nullptr;
  for (auto* blanks : {&ready_, &making_}) {
    sandbox* unfurnished = nullptr;
    for (auto serial : *blanks) {
      auto* s = find(serial);
      if (s->fits && s->fits->alike(order))
        return s;
      (s->fits ? other : unfurnished) = s;
    }
    if (unfurnished)
      return unfurnished;
  }
  // One of another kind makes room for one of this kind.
  if (other)
    kill(*other, std::nullopt);
  return nullptr;
}

result<sandboxes::sandbox*> sandboxes::make_blank(std::shared_ptr<const create_order> likely) {
  auto slot = slots_.take();
  if (!slot)
    return error{errc::exhausted,
                 "make a sandbox: all " + std::to_string(slots_max) + " id ranges are taken"};
  auto& s = insert(slot_name(*slot));
  s.is = phase::blank;
  s.slot = slot;
  s.fits = std::move(likely);
  making_.insert(s.serial);
  int pair[2];
  auto group = on_.groups.make_outer(*slot);
  if (group && ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    group = errno_error(errno, "make the socket of a sandbox");
  if (!group) {
    kill(s, std::nullopt);
    return group.error();
  }
  s.socket.reset(pair[0]);
  descriptor theirs{pair[1]};
  auto network = networks_.take();
  kill_point(crash_role::spawner);
  auto pid = fork_into(group->get());
  if (pid == 0)
    build_sandbox(on_, *slot, network.release(), theirs.release(), s.fits.get());
  kill_point(crash_role::spawner);
  if (pid < 0) {
    auto why = errno_error(errno, "fork the process of a sandbox");
    kill(s, std::nullopt);
    return why;
  }
  s.pid = pid;
  s.is_child = true;
  by_pid_[pid] = s.serial;
  if (!loop_.add(s.socket.get(), source::report, s.serial)) {
    auto why = errno_error(errno, "watch the process of a sandbox");
    kill(s, std::nullopt);
    return why;
  }
  return &s;
}

void sandboxes::give(sandbox& blank, sandbox& to) {
  making_.erase(blank.serial);
  ready_.erase(blank.serial);
  to.is = phase::building;
  ++building_;
  to.slot = blank.slot;
  to.prepared = blank.prepared;
  to.pid = blank.pid;
  to.is_child = blank.is_child;
  to.socket = std::move(blank.socket);
  by_pid_[to.pid] = to.serial;
  bool watched = loop_.change(to.socket.get(), source::report, to.serial, EPOLLIN);
  int number = errno;
  to.host_name = std::move(blank.host_name);
  by_serial_.erase(blank.serial);
  by_id_.erase(std::string{blank.id});
  if (!watched)
    return kill(to, errno_error(number, "watch the process of " + to.id));
  if (to.prepared)
    hand_over(to);
}

void sandboxes::hand_over(sandbox& to) {
  auto named = name_sandbox(on_, *to.slot, to.host_name.get(), *to.order);
  to.host_name.reset();
  if (!named)
    return kill(to, named.error());
  kill_point(crash_role::spawner);
  int number = send_datagram(to.socket.get(), to.order->datagram, -1, MSG_DONTWAIT);
  kill_point(crash_role::spawner);
  // A process that is gone has told why.
  if (number == EPIPE || number == ECONNRESET)
    read_report(to);
  else if (number != 0)
    kill(to, errno_error(number, "hand its request to the process of " + to.id));
}

} // namespace dsec::spawner
