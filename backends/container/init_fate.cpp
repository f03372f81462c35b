#include "backends/container/init_fate.hpp"

#include "backends/container/tombstone.hpp"

#include <fmt/format.h>
#include <kj/io.h>
#include <sys/syscall.h>

#include <unistd.h>
#include <utility>

namespace dsec {

namespace {

/// A process that is killed closes its connections a moment before it has ended.
constexpr auto death_patience = 1 * kj::SECONDS;

struct watched_process {
  kj::AutoCloseFd fd;
  kj::UnixEventPort::FdObserver observer;

  watched_process(kj::UnixEventPort& port, int number)
    : fd{number},
      observer{port, number, kj::UnixEventPort::FdObserver::OBSERVE_READ} {}
};

/// Whether the process has ended, at most after `death_patience`.
kj::Promise<bool> has_ended(io_loop& loop, int pid) {
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0)
    return true;
  auto watched = kj::heap<watched_process>(loop.port(), fd);
  auto ended = watched->observer.whenBecomesReadable().then([] { return true; });
  auto lives = loop.timer().afterDelay(death_patience).then([] { return false; });
  return ended.exclusiveJoin(kj::mv(lives)).attach(kj::mv(watched));
}

} // namespace

init_fates::init_fates(io_loop& loop, spawner_link& spawner, std::filesystem::path run_dir)
  : loop_{loop},
    spawner_{spawner},
    run_dir_{std::move(run_dir)} {}

void init_fates::find_out(const sandbox_id& id, std::string why, completion<sandbox_end> told) {
  known_[id].asked.push_back(std::move(told));
  // dsec-init writes its tombstone before it goes.
  if (auto end = read_tombstone(run_dir_, id))
    return settle(id, *std::move(end));
  spawner_.init_of(id, [weak = weak_from_this(), id, why = std::move(why)](result<int> pid) {
    auto self = weak.lock();
    if (!self)
      return;
    if (pid)
      return self->judge(id, why, *pid);
    self->settle(id, {end_cause::infrastructure,
                      fmt::format("the link to its dsec-init broke ({}), and whether that lives is "
                                  "not known: {}",
                                  why, pid.error().message)});
  });
}

void init_fates::judge(const sandbox_id& id, const std::string& why, int pid) {
  const sandbox_end gone{end_cause::infrastructure, "dsec-init is gone"};
  if (pid == 0)
    return settle(id, gone);
  loop_.spawn(has_ended(loop_, pid).then([weak = weak_from_this(), id, why, pid, gone](bool ended) {
    auto self = weak.lock();
    if (!self)
      return;
    if (ended)
      return self->settle(id, gone);
    self->settle(
      id, {end_cause::infrastructure,
           fmt::format("the link to its dsec-init (pid {}, which lives) broke: {}", pid, why)});
  }));
}

void init_fates::settle(const sandbox_id& id, sandbox_end otherwise) {
  auto at = known_.find(id);
  if (at == known_.end())
    return;
  auto left = read_tombstone(run_dir_, id);
  at->second.end = left ? *std::move(left) : std::move(otherwise);
  const auto end = *at->second.end;
  for (auto& told : std::exchange(at->second.asked, {}))
    told(end);
}

void init_fates::ask(const sandbox_id& id, completion<sandbox_end> done) {
  if (auto at = known_.find(id); at != known_.end()) {
    if (at->second.end)
      return done(*at->second.end);
    at->second.asked.push_back(std::move(done));
    return;
  }
  auto end = read_tombstone(run_dir_, id);
  done(end ? result<sandbox_end>{*std::move(end)}
           : result<sandbox_end>{
             error{errc::not_found, fmt::format("{}: dsec-init left no cause of its end", id)}});
}

void init_fates::forget(const sandbox_id& id) {
  auto at = known_.extract(id);
  if (at.empty())
    return;
  for (auto& told : at.mapped().asked)
    told(error{errc::not_found, fmt::format("{}: it was removed meanwhile", id)});
}

} // namespace dsec
