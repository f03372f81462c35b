#include "backends/init/sandbox.hpp"

#include "backends/init/tombstone.hpp"
#include "backends/kill_point.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

namespace {

/// How long an ended sandbox stays reachable at most, so that pending answers leave.
constexpr auto farewell = 1 * kj::SECONDS;

/// How often it is looked whether they have.
constexpr auto farewell_step = 2 * kj::MILLISECONDS;

/// Where a thread moves itself, without the lock over all forks that a write to cgroup.procs takes.
kj::AutoCloseFd tasks_of(int folder) {
  return kj::AutoCloseFd{folder < 0 ? -1 : ::openat(folder, "tasks", O_WRONLY | O_CLOEXEC)};
}

std::string how_it_ended(int pidfd) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG)
        != 0
      || info.si_pid == 0)
    return "PID 1 of the sandbox is gone";
  if (info.si_code == CLD_EXITED)
    return "PID 1 of the sandbox exited with code " + std::to_string(info.si_status);
  return "PID 1 of the sandbox was ended by signal " + std::to_string(info.si_status);
}

} // namespace

sandbox::sandbox(launch given, privileged_files privileged, kj::AsyncIoContext& io)
  : given_{std::move(given)},
    privileged_{kj::mv(privileged)},
    port{io.unixEventPort},
    timer{io.provider->getTimer()},
    counts{given_},
    reaper{port, kj::AutoCloseFd{given_.reaper_socket}},
    groups{given_},
    memory_deaths{kj::mv(privileged_.kernel_log)},
    disk{given_.scratch_dir},
    files{port, kj::mv(privileged_.user_namespace), kj::mv(privileged_.mount_namespace)},
    commands{{port, timer, reaper, groups, counts, given_, memory_deaths, disk}, files},
    processes{{port, timer, reaper, groups, counts, given_, memory_deaths, disk}, files},
    freeze{port,
           timer,
           given_.payload_v2,
           counts,
           [this] {
             commands.freeze_clocks();
             processes.freeze_clocks();
             clocks.stand();
           },
           [this] {
             commands.thaw_clocks();
             processes.thaw_clocks();
             clocks.go_on();
           }},
    leases{timer,
           [this] {
             // Whatever comes of it is seen in the phase; there is nobody to tell.
             freeze.pause().detach([](kj::Exception&&) {});
             freeze.reclaim().detach([](kj::Exception&&) {});
           },
           [this] {
             lease_expired();
           }},
    clocks{timer,
           [this](life_clocks::which clock) {
             clock_passed(clock);
           }},
    reaper_observer_{port, given_.reaper_pidfd, kj::UnixEventPort::FdObserver::OBSERVE_READ},
    over_promise_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  over_ = kj::mv(pair.fulfiller);
  over_promise_ = kj::mv(pair.promise);
  kept_ = hand_over_kept();
  // The first command's group, ahead. One that cannot be made is an answer to that command.
  if (auto first = groups.acquire())
    groups.release(std::move(*first));
}

void sandbox::become(assignment whose) {
  assigned_ = std::move(whose);
  leases.renew(assigned_.pause_after_ms, assigned_.stop_after_ms);
  clocks.begin(assigned_.age_ms);
  clocks.set(assigned_.time_to_live_ms, assigned_.rollout_budget_ms);
}

kj::Promise<void> sandbox::run() {
  reaper.on_event([this](const reaper::event& e) {
    commands.told(e);
    processes.told(e);
  });
  auto events = reaper.run();
  auto death = reaper_observer_.whenBecomesReadable();
  // What PID 1 told last is heard before its death is; its socket closes a moment before the
  // process has ended and can say how.
  tasks_ = events
             .then([this, dead = kj::mv(death)]() mutable {
               return dead.exclusiveJoin(timer.afterDelay(farewell));
             })
             .then([this] { reaper_ended(); })
             .eagerlyEvaluate([](kj::Exception&&) {});
  return kj::mv(over_promise_);
}

result<void> sandbox::hand_over_kept() {
  const auto cpu = tasks_of(given_.cpu_v1);
  return reaper.keep(privileged_.null_device, {cpu});
}

void sandbox::reaper_ended() {
  end(wire::Outcome::Kind::SELF_INFLICTED, "self_inflicted", how_it_ended(given_.reaper_pidfd));
}

void sandbox::lease_expired() {
  end(wire::Outcome::Kind::SANDBOX_STOPPED, "lease_expired",
      "the job's lease was not renewed in time");
}

void sandbox::clock_passed(life_clocks::which clock) {
  switch (clock) {
  case life_clocks::which::time_to_live:
    return end(wire::Outcome::Kind::EXPIRED, "time_to_live",
               "its time to live of " + std::to_string(clocks.time_to_live_ms())
                 + " ms has passed");
  case life_clocks::which::rollout_budget:
    return end(wire::Outcome::Kind::BUDGET_SPENT, "rollout_budget",
               "its rollout budget of " + std::to_string(clocks.rollout_budget_ms())
                 + " ms is spent");
  }
}

void sandbox::end(wire::Outcome::Kind kind, const char* word, const std::string& detail) {
  if (ending_)
    return;
  ending_ = true;
  // The cause is on disk before anybody can see the effect.
  (void)write_tombstone(given_.run_dir, id(), word, detail);
  kill_point(crash_role::init);
  commands.settle_all(kind, detail);
  processes.settle_all(kind, detail);
  const int all = ::openat(given_.payload_v2, "cgroup.kill", O_WRONLY | O_CLOEXEC);
  if (all >= 0) {
    (void)!::write(all, "1", 1);
    ::close(all);
  }
  ::syscall(SYS_pidfd_send_signal, given_.reaper_pidfd, SIGKILL, nullptr, 0);
  kill_point(crash_role::init);
  until_told(timer.now() + farewell).then([this] { over_->fulfill(); }).detach([](kj::Exception&&) {
  });
}

kj::Promise<void> sandbox::until_told(kj::TimePoint last) {
  return timer.afterDelay(farewell_step).then([this, last]() -> kj::Promise<void> {
    // The loop came to rest before this: what could be answered has been.
    const bool told = commands.owes_nobody() && processes.owes_nobody() && all_sent();
    return told || timer.now() >= last ? kj::READY_NOW : until_told(last);
  });
}

} // namespace dsec::init
