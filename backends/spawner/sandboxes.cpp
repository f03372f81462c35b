#include "backends/spawner/sandboxes.hpp"

#include "backends/init/owner_note.hpp"
#include "backends/kill_point.hpp"
#include "backends/spawner/builder.hpp"
#include "backends/spawner/worker.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <unistd.h>

namespace dsec::spawner {

sandboxes::sandboxes(const machine& on, std::size_t blanks, poller& loop, network_pool& networks,
                     sweeper& sweeper, journal& to, answer_function answer)
  : on_{on},
    loop_{loop},
    networks_{networks},
    sweeper_{sweeper},
    log_{to},
    answer_{std::move(answer)},
    blanks_wanted_{std::min<std::size_t>(blanks, slots_max / 4)},
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
  case phase::blank: // Never: no request can name one.
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

void sandboxes::destroy(const destroy_order& order, asker from) {
  const auto& id = order.id;
  auto found = by_id_.find(id);
  if (found == by_id_.end()) {
    remove_tombstone(id);
    answer_(from, nullptr);
    return;
  }
  auto& s = found->second;
  if (order.epoch != 0 && s.is == phase::live)
    if (auto owner = init::noted_owner(on_.run_dir.get(), id); owner > order.epoch) {
      error fenced{errc::invalid_state, "destroy " + id + " with epoch "
                                          + std::to_string(order.epoch) + ": a node of epoch "
                                          + std::to_string(owner) + " has entered it"};
      answer_(from, &fenced);
      return;
    }
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
  case phase::blank: // Never: no request can name one.
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
    auto* blank = pick_blank(*s->order);
    if (!blank) {
      auto made = make_blank(std::make_shared<const create_order>(*s->order));
      if (!made) {
        s->failure = made.error();
        finish(*s, "");
        continue;
      }
      blank = *made;
    }
    give(*blank, *s);
  }
}

void sandboxes::on_report(std::uint64_t serial) {
  if (auto* s = find(serial); s && s->socket)
    read_report(*s);
}

void sandboxes::read_report(sandbox& s) {
  std::string report;
  descriptor beside;
  if (!receive_datagram(s.socket.get(), report, &beside, MSG_DONTWAIT, sizeof(build_report))) {
    kill(s, error{errc::unavailable, "build sandbox " + s.id + ": its process died"});
  } else if (report[0] != 0) {
    kill(s, error{static_cast<errc>(report[0]), report.substr(1)});
  } else if (!s.prepared) {
    s.prepared = true;
    s.host_name = std::move(beside);
    if (s.is == phase::building) {
      hand_over(s);
    } else {
      making_.erase(s.serial);
      ready_.insert(s.serial);
    }
  } else {
    s.is = phase::live;
    --building_;
    refilling_ = refilling_ || blanks_wanted_ != 0;
    if (!likely_ || !likely_->alike(*s.order))
      likely_ = std::make_shared<const create_order>(*std::move(s.order));
    s.order.reset();
    created_at_ = std::chrono::steady_clock::now();
    s.socket.reset();
    if (on_.trace)
      log_.line("sandbox.built", s.id + ' ' + report.substr(1));
    answer_all(s.creators, nullptr);
    start_queued();
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
  } else if (s->is == phase::killed) {
    sweep_when_empty(*s);
  }
  // It may have told why, before it ended.
  while (s->is == phase::blank || s->is == phase::building)
    read_report(*s);
  return true;
}

void sandboxes::on_events(std::uint64_t serial) {
  if (auto* s = find(serial); s && s->is == phase::killed)
    sweep_when_empty(*s);
}

void sandboxes::kill(sandbox& s, std::optional<error> why) {
  if (s.is == phase::building)
    --building_;
  if (s.is == phase::blank && why) {
    log_.line("sandbox.no_blank", why->message);
    refilling_ = false;
  }
  making_.erase(s.serial);
  ready_.erase(s.serial);
  s.is = phase::killed;
  s.failure = std::move(why);
  s.socket.reset();
  s.host_name.reset();
  s.pidfd.reset();
  if (s.slot) {
    on_.groups.kill(*s.slot);
    s.events = on_.groups.events(*s.slot);
  }
  // What cannot be watched is swept at once: the sweeper tries for as long as it takes a process to
  // go.
  if (s.events && !loop_.add(s.events.get(), source::events, s.serial, EPOLLPRI))
    s.events.reset();
  sweep_when_empty(s);
}

void sandboxes::sweep_when_empty(sandbox& s) {
  // Read in any case: the file stays ready until it is.
  bool populated = s.events && cgroups::populated(s.events.get());
  if (s.is_child || populated)
    return;
  s.events.reset();
  s.is = phase::sweeping;
  sweeper_.push({s.id, s.slot});
}

void sandboxes::on_swept(const swept& done) {
  auto found = by_id_.find(done.name);
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
    else if (s.is != phase::queued && s.is != phase::building && valid_sandbox_id(id))
      entries.push_back({id, 0, true});
  return entries;
}

std::size_t sandboxes::count() const {
  return static_cast<std::size_t>(std::count_if(by_id_.begin(), by_id_.end(), [](auto& entry) {
    return valid_sandbox_id(entry.first);
  }));
}

bool sandboxes::empty() const {
  return std::all_of(by_id_.begin(), by_id_.end(),
                     [](auto& entry) { return entry.second.is == phase::stuck; });
}

} // namespace dsec::spawner
