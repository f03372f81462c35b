// The part of a command that decides how it ended.

#include "backends/init/command.hpp"

#include <cerrno>
#include <csignal>

namespace dsec::init {

using kind = wire::Outcome::Kind;

namespace {

/// At the limit, this much is refused at once at most: a huge page, and what the processors hold in
/// advance.
constexpr std::uint64_t refused_bytes_max = 4 << 20;

} // namespace

void command::no_process() {
  const auto has = around_.counts.processes();
  if (around_.given.processes == 0 || has < around_.given.processes)
    return refuse({errc::unavailable, "start '" + request_.program
                                        + "': the machine gives no process, the sandbox has "
                                        + std::to_string(has) + " of its "
                                        + std::to_string(around_.given.processes)});
  know_start({});
  end(kind::PIDS_LIMIT, 0);
}

void command::decide(const reaper::event& event) {
  if (event.what == reaper::verb::signalled) {
    KJ_IF_MAYBE (because, killed_because_) {
      return end(*because, event.value);
    }
    if (event.value == SIGKILL)
      KJ_IF_MAYBE (death, memory_death(event.pid, {event.pid_outside, event.root_outside})) {
        return end(*death, event.value);
      }
    return end(kind::SIGNALLED, event.value);
  }
  if (event.value == 0)
    return end(kind::EXITED, 0);
  if (around_.groups.forks_refused(*group_) > refusals_before_)
    return end(kind::PIDS_LIMIT, event.value);
  failed_on_full_disk_ = around_.disk.full();
  if (failed_on_full_disk_ && around_.disk.alone(disk_stay_)) {
    limit_bytes_ = peak_bytes_ = around_.given.disk_bytes;
    return end(kind::DISK_FULL, event.value);
  }
  end(kind::EXITED, event.value);
}

bool command::saw_oom_kill() const {
  return group_ && around_.groups.oom_kills(*group_) > oom_before_;
}

/// Of a main process that was ended by SIGKILL, which nobody of dsec's sent; nothing if it was not
/// for memory.
kj::Maybe<kind> command::memory_death(pid_t inside, const reaper_link::outside& who) {
  if (!saw_oom_kill())
    return nullptr;
  const auto found =
    around_.memory_deaths.of(who.pid, who.root, began_, around_.groups.oom_kills());
  if (found.what == oom_log::verdict::other)
    return nullptr;
  limit_bytes_ = around_.given.memory_bytes;
  peak_bytes_ = around_.counts.charged_peak_bytes();
  const bool named = found.what == oom_log::verdict::victim;
  const auto pid = inside > 0 ? " (pid " + std::to_string(inside) + ")" : std::string{};
  cause_ = "killed " + (named ? found.who.name : "'" + request_.program + "'") + pid;
  if (found.who.machine || (peak_bytes_ != 0 && peak_bytes_ + refused_bytes_max < limit_bytes_)) {
    cause_ += ": the machine was out of memory, not the sandbox";
    return kind::INFRASTRUCTURE;
  }
  if (!named)
    cause_ += ", as its control group counts; the kernel's log cannot tell";
  return kind::OOM_KILLED;
}

void command::settle(kind k, std::string cause) {
  if (ended_)
    return;
  if (start_ == nullptr)
    know_start({});
  if (began_ == clock::time_point{})
    began_ = clock::now();
  cause_ = std::move(cause);
  if (k == kind::SELF_INFLICTED)
    KJ_IF_MAYBE (death, memory_death(0, around_.reaper.born(id_))) {
      k = *death;
    }
  end(k, 0);
}

void command::end(kind k, std::int32_t code) {
  if (ended_)
    return;
  ended_ = true;
  kind_ = k;
  code_ = code;
  if (group_) {
    const auto kills = around_.groups.oom_kills(*group_);
    oom_kills_ = static_cast<std::uint32_t>(kills > oom_before_ ? kills - oom_before_ : 0);
  }
  if (disk_stay_.number != 0)
    around_.disk.leave();
  duration_ = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - began_);
  clock_runs_ = false;
  deadline_task_ = nullptr;
  output_task_ = nullptr;
  if (in_)
    in_->close();
  drain();
}

void command::finish() {
  // Only now is all there that it said.
  if (failed_on_full_disk_ && kind_ == kind::EXITED
      && (disk_probe::is_said_in(err_->kept()) || disk_probe::is_said_in(out_->kept()))) {
    kind_ = kind::DISK_FULL;
    limit_bytes_ = peak_bytes_ = around_.given.disk_bytes;
  }
  tell_finished_->fulfill();
}

} // namespace dsec::init
