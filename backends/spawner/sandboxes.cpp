#include "backends/spawner/sandboxes.hpp"

#include "backends/kill_point.hpp"
#include "backends/spawner/builder.hpp"
#include "backends/spawner/lock_file.hpp"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <set>
#include <thread>

namespace dsec::spawner {

namespace {

/// Forks into a cgroup. Raw, as glibc has no call for it; the spawner has one thread.
pid_t fork_into(int group) {
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(group);
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

/// Ids that have a file in the run directory which says that something of them is left.
void add_run_ids(const std::string& run_dir, std::set<std::string>& ids) {
  DIR* directory = ::opendir(run_dir.c_str());
  if (!directory)
    return;
  while (auto* entry = ::readdir(directory)) {
    std::string_view name{entry->d_name};
    for (std::string_view ending : {".lock", ".sock"})
      if (name.ends_with(ending) && valid_sandbox_id(name.substr(0, name.size() - ending.size())))
        ids.emplace(name.substr(0, name.size() - ending.size()));
  }
  ::closedir(directory);
}

} // namespace

sandboxes::sandboxes(const machine& on, poller& loop, network_pool& networks, sweeper& sweeper,
                     journal& to, answer_function answer)
  : on_{on},
    loop_{loop},
    networks_{networks},
    sweeper_{sweeper},
    log_{to},
    answer_{std::move(answer)},
    building_max_{2 * std::max<std::size_t>(2, std::thread::hardware_concurrency())} {}

sandboxes::sandbox& sandboxes::insert(const std::string& id) {
  auto& s = by_id_[id];
  s.serial = next_serial_++;
  s.id = id;
  by_serial_[s.serial] = id;
  return s;
}

sandboxes::sandbox* sandboxes::find(std::uint64_t serial) {
  auto found = by_serial_.find(serial);
  return found == by_serial_.end() ? nullptr : &by_id_.at(found->second);
}

void sandboxes::answer_all(std::vector<asker>& askers, const error* e) {
  for (auto& to : askers)
    answer_(to, e);
  askers.clear();
}

void sandboxes::remove_tombstone(const std::string& id) const {
  kill_point(crash_role::spawner);
  ::unlinkat(on_.run_dir.get(), (id + ".end").c_str(), 0);
  kill_point(crash_role::spawner);
}

void sandboxes::adopt() {
  std::set<std::string> ids;
  add_run_ids(on_.where.run_dir(), ids);
  for (auto& id : on_.groups.sandbox_ids())
    ids.insert(id);
  for (auto& id : on_.disk.sandbox_ids())
    ids.insert(id);
  for (auto& id : ids)
    adopt_one(id);
}

void sandboxes::adopt_one(const std::string& id) {
  auto& s = insert(id);
  auto content = read_lock(on_.run_dir.get(), id);
  if (content) {
    s.slot = content->slot;
    slots_.mark(content->slot);
    // The descriptor first: what holds the lock after that is what it stands for.
    s.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, content->pid, 0)));
    if (content->live && s.pidfd && is_locked(on_.run_dir.get(), id)
        && on_.groups.holds(id, content->pid)) {
      s.is = phase::live;
      s.pid = content->pid;
      loop_.add(s.pidfd.get(), source::pidfd, s.serial);
      log_.line("sandbox.adopted", id + " pid " + std::to_string(s.pid));
      return;
    }
    s.pidfd.reset();
  }
  // Dead, or half built: whoever asked for it has lost its connection and was never answered.
  log_.line("sandbox.leftover", id);
  kill(s, std::nullopt);
}

void sandboxes::create(create_order order, asker from) {
  auto found = by_id_.find(order.id);
  if (found == by_id_.end()) {
    auto& s = insert(order.id);
    s.order = std::move(order);
    s.creators.push_back(from);
    queue_.push_back(s.serial);
    start_queued();
    return;
  }
  auto& s = found->second;
  switch (s.is) {
  case phase::queued:
  case phase::building:
    s.creators.push_back(from);
    break;
  case phase::live:
    answer_(from, nullptr);
    break;
  case phase::killed:
  case phase::sweeping:
  case phase::stuck:
    s.next = std::move(order);
    s.next_creators.push_back(from);
    if (s.is == phase::stuck)
      sweep_when_empty(s);
    break;
  }
}

void sandboxes::destroy(const std::string& id, asker from) {
  auto found = by_id_.find(id);
  if (found == by_id_.end()) {
    remove_tombstone(id);
    answer_(from, nullptr);
    return;
  }
  auto& s = found->second;
  s.destroyers.push_back(from);
  error overtaken{errc::invalid_state, "create " + id + ": it was destroyed meanwhile"};
  s.next.reset();
  answer_all(s.next_creators, &overtaken);
  switch (s.is) {
  case phase::queued:
    s.failure = overtaken;
    std::erase(queue_, s.serial);
    finish(s, "");
    break;
  case phase::building:
  case phase::live:
    kill(s, overtaken);
    break;
  case phase::killed:
  case phase::sweeping:
    break;
  case phase::stuck:
    sweep_when_empty(s);
    break;
  }
}

void sandboxes::start_queued() {
  while (building_ < building_max_ && !queue_.empty()) {
    auto* s = find(queue_.front());
    queue_.pop_front();
    if (s)
      start_build(*s);
  }
}

void sandboxes::start_build(sandbox& s) {
  s.is = phase::building;
  ++building_;
  s.slot = slots_.take();
  if (!s.slot) {
    --building_;
    s.failure = error{errc::exhausted, "create " + s.id + ": all " + std::to_string(slots_max)
                                         + " id ranges are taken"};
    finish(s, "");
    return;
  }
  auto group = on_.groups.make_outer(s.id);
  int pipe[2] = {-1, -1};
  if (group && ::pipe2(pipe, O_CLOEXEC) < 0)
    group = errno_error(errno, "make the report pipe of " + s.id);
  if (!group) {
    kill(s, group.error());
    return;
  }
  s.report.reset(pipe[0]);
  descriptor theirs{pipe[1]};
  auto network = networks_.take();
  kill_point(crash_role::spawner);
  auto pid = fork_into(group->get());
  if (pid == 0)
    build_sandbox(on_, *s.order, *s.slot, network.release(), theirs.release());
  kill_point(crash_role::spawner);
  if (pid < 0) {
    kill(s, errno_error(errno, "fork dsec-init of " + s.id));
    return;
  }
  s.pid = pid;
  s.is_child = true;
  by_pid_[pid] = s.serial;
  loop_.add(s.report.get(), source::report, s.serial);
}

void sandboxes::on_report(std::uint64_t serial) {
  auto* s = find(serial);
  if (!s || s->is != phase::building)
    return;
  build_report report{};
  auto size = ::read(s->report.get(), &report, sizeof report - 1);
  s->report.reset();
  if (size > 0 && report.code == 0) {
    s->is = phase::live;
    --building_;
    s->order.reset();
    if (on_.trace)
      log_.line("sandbox.built", s->id + ' ' + report.text);
    answer_all(s->creators, nullptr);
    start_queued();
  } else if (size > 0) {
    kill(*s, error{static_cast<errc>(report.code), report.text});
  } else {
    kill(*s, error{errc::unavailable, "build sandbox " + s->id + ": its process died"});
  }
}

void sandboxes::on_pidfd(std::uint64_t serial) {
  auto* s = find(serial);
  if (!s)
    return;
  s->pidfd.reset();
  if (s->is == phase::live)
    kill(*s, std::nullopt);
}

bool sandboxes::on_exit(pid_t pid) {
  auto found = by_pid_.find(pid);
  if (found == by_pid_.end())
    return false;
  auto* s = find(found->second);
  by_pid_.erase(found);
  if (!s)
    return true;
  s->is_child = false;
  if (s->is == phase::live) {
    log_.line("sandbox.ended", s->id + ": its dsec-init is gone");
    kill(*s, std::nullopt);
  } else if (s->is == phase::building) {
    on_report(s->serial); // It may have told why.
  } else if (s->is == phase::killed) {
    sweep_when_empty(*s);
  }
  return true;
}

void sandboxes::on_events(std::uint64_t serial) {
  if (auto* s = find(serial); s && s->is == phase::killed)
    sweep_when_empty(*s);
}

void sandboxes::kill(sandbox& s, std::optional<error> why) {
  if (s.is == phase::building)
    --building_;
  s.is = phase::killed;
  s.failure = std::move(why);
  s.report.reset();
  s.pidfd.reset();
  on_.groups.kill(s.id);
  s.events = on_.groups.events(s.id);
  if (s.events)
    loop_.add(s.events.get(), source::events, s.serial, EPOLLPRI);
  sweep_when_empty(s);
}

void sandboxes::sweep_when_empty(sandbox& s) {
  // Read in any case: the file stays ready until it is.
  bool populated = s.events && cgroups::populated(s.events.get());
  if (s.is_child || populated)
    return;
  s.events.reset();
  s.is = phase::sweeping;
  sweeper_.push(s.id);
}

void sandboxes::on_swept(const swept& done) {
  auto found = by_id_.find(done.id);
  if (found != by_id_.end() && found->second.is == phase::sweeping)
    finish(found->second, done.why_not);
}

void sandboxes::finish(sandbox& s, const std::string& why_not) {
  if (!why_not.empty()) {
    log_.line("sandbox.stuck", s.id + ": " + why_not);
    s.is = phase::stuck;
    error left{errc::unavailable, "remove sandbox " + s.id + ": " + why_not};
    answer_all(s.destroyers, &left);
    answer_all(s.creators, s.failure ? &*s.failure : &left);
    answer_all(s.next_creators, &left);
    start_queued();
    return;
  }
  if (s.slot)
    slots_.release(*s.slot);
  error unknown{errc::unavailable, "create " + s.id + ": it ended"};
  answer_all(s.creators, s.failure ? &*s.failure : &unknown);
  if (!s.destroyers.empty())
    remove_tombstone(s.id);
  answer_all(s.destroyers, nullptr);
  auto next = std::move(s.next);
  auto next_creators = std::move(s.next_creators);
  by_serial_.erase(s.serial);
  by_id_.erase(std::string{s.id});
  if (next)
    for (auto& from : next_creators)
      create(*next, from);
  start_queued();
}

std::vector<live_entry> sandboxes::list() const {
  std::vector<live_entry> entries;
  for (auto& [id, s] : by_id_)
    if (s.is == phase::live)
      entries.push_back({id, s.pid, false});
    else if (s.is != phase::queued && s.is != phase::building)
      entries.push_back({id, 0, true});
  return entries;
}

} // namespace dsec::spawner
