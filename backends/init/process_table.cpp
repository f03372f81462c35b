#include "backends/init/process_table.hpp"

#include <algorithm>

namespace dsec::init {

process_table::entries::iterator process_table::at(std::uint64_t id) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [id](const auto& e) { return e.of->id() == id; });
}

result<void> process_table::check(const std::string& name) {
  std::size_t live = 0;
  for (const auto& e : entries_) {
    if (e.of->over())
      continue;
    ++live;
    if (!name.empty() && e.of->name() == name)
      return error{errc::invalid_state, "start process '" + name + "': process "
                                          + std::to_string(e.of->id())
                                          + " has this name and lives"};
  }
  if (live >= reaper::processes_max)
    return error{errc::exhausted, "start a process: " + std::to_string(live)
                                    + " live, the limit is "
                                    + std::to_string(reaper::processes_max)};
  return {};
}

void process_table::make_room() {
  std::erase_if(dropped_, [](auto& each) {
    each->tidy();
    return each->silent();
  });
  for (auto& e : entries_)
    e.of->tidy();
  if (entries_.size() < reaper::processes_max)
    return;
  auto oldest =
    std::find_if(entries_.begin(), entries_.end(), [](const auto& e) { return e.of->over(); });
  if (oldest != entries_.end())
    drop(oldest);
}

void process_table::drop(entries::iterator which) {
  which->of->tidy();
  if (!which->of->silent())
    dropped_.push_back(kj::addRef(*which->of));
  entries_.erase(which);
}

kj::Promise<result<kj::Own<process>>> process_table::join(entry& known) {
  return known.starting.addBranch().then(
    [of = kj::addRef(*known.of)](result<void>&& ok) mutable -> result<kj::Own<process>> {
      if (!ok)
        return ok.error();
      return kj::mv(of);
    });
}

kj::Promise<result<kj::Own<process>>>
process_table::spawn(std::uint64_t id, wire::Init::SpawnParams::Reader how) {
  using answer = result<kj::Own<process>>;
  if (auto known = at(id); known != entries_.end())
    return join(*known);
  if (!settled_.empty())
    return answer{error{errc::unavailable, "start a process: the sandbox has ended: " + settled_}};
  auto request = command_request::read(how.getSpec());
  if (!request)
    return answer{request.error()};
  auto terms = process_terms::read(how);
  if (terms.terminal && (terms.rows == 0 || terms.columns == 0))
    return answer{error{errc::invalid_argument, "start a process: its terminal has 0 rows or "
                                                "columns"}};
  if (auto ok = check(terms.name); !ok)
    return answer{ok.error()};
  make_room();
  auto made = kj::refcounted<process>(around_, id, std::move(terms), std::move(*request));
  auto* raw = made.get();
  auto starting = raw->start(files_).then([this, id, raw](result<void>&& ok) {
    // The entry holds the promise this runs in, so it goes in the next turn.
    if (!ok)
      kj::evalLater([this, id, kept = kj::addRef(*raw)] {
        auto mine = at(id);
        if (mine != entries_.end() && mine->of.get() == kept.get())
          entries_.erase(mine);
      }).detach([](kj::Exception&&) {});
    return kj::mv(ok);
  });
  entries_.push_back({kj::mv(made), starting.fork()});
  return join(entries_.back());
}

kj::Maybe<kj::Own<process>> process_table::find(std::uint64_t id) {
  auto known = at(id);
  if (known == entries_.end())
    return nullptr;
  return kj::addRef(*known->of);
}

result<void> process_table::remove(std::uint64_t id) {
  auto known = at(id);
  if (known == entries_.end())
    return error{errc::not_found, "remove process " + std::to_string(id) + ": there is none"};
  if (!known->of->over())
    return error{errc::invalid_state, "remove process " + std::to_string(id) + ": it lives"};
  drop(known);
  return {};
}

void process_table::list(wire::Init::ProcessesResults::Builder to) {
  auto all = to.initProcesses(static_cast<unsigned>(entries_.size()));
  for (unsigned i = 0; i < all.size(); ++i)
    entries_[i].of->describe(all[i]);
}

bool process_table::owes_nobody() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const auto& e) { return e.of->owes_nobody(); });
}

void process_table::told(const reaper::event& event) {
  if (auto known = at(event.exec_id); known != entries_.end())
    known->of->told(event);
}

void process_table::settle_all(wire::Outcome::Kind kind, const std::string& cause) {
  settled_ = cause;
  for (auto& e : entries_)
    e.of->settle(kind, cause);
}

void process_table::freeze_clocks() {
  for (auto& e : entries_)
    e.of->freeze_clock();
}

void process_table::thaw_clocks() {
  for (auto& e : entries_)
    e.of->thaw_clock();
}

} // namespace dsec::init
