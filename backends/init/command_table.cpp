#include "backends/init/command_table.hpp"

#include <algorithm>

namespace dsec::init {

namespace {

/// Ended and not yet acknowledged ones included; each may hold its spool.
constexpr std::size_t commands_max = 4096;

} // namespace

kj::Promise<result<kj::Own<command>>> command_table::join(std::uint64_t id) {
  auto& found = entries_.at(id);
  auto run = kj::addRef(*found.run);
  KJ_IF_MAYBE (starting, found.starting) {
    return starting->addBranch().then(
      [run = kj::mv(run)](result<void>&& ok) mutable -> result<kj::Own<command>> {
        if (!ok)
          return ok.error();
        return kj::mv(run);
      });
  }
  return result<kj::Own<command>>{kj::mv(run)};
}

kj::Promise<result<kj::Own<command>>>
command_table::exec(std::uint64_t id, wire::ExecSpec::Reader spec, bool attended) {
  using manner = command::manner;
  if (!entries_.contains(id))
    if (auto ok = begin(id, spec, attended ? manner::attended : manner::watched); !ok)
      return result<kj::Own<command>>{ok.error()};
  return join(id);
}

kj::Promise<result<kj::Own<command>>>
command_table::run(std::uint64_t id, wire::ExecSpec::Reader spec) {
  if (spec.getHasStdin())
    return result<kj::Own<command>>{
      error{errc::invalid_argument,
            "run exec " + std::to_string(id) + ": hasStdin needs the capability that exec gives"}};
  if (!entries_.contains(id))
    if (auto ok = begin(id, spec, command::manner::collected); !ok)
      return result<kj::Own<command>>{ok.error()};
  return join(id).then(
    [this](result<kj::Own<command>>&& joined) -> kj::Promise<result<kj::Own<command>>> {
      if (!joined)
        return kj::mv(joined);
      auto& run = **joined;
      return run.finished().then(
        [this, kept = kj::mv(*joined)]() mutable -> result<kj::Own<command>> {
          if (const auto* why = kept->refusal()) {
            erase(kept->id(), *kept);
            return *why;
          }
          return kj::mv(kept);
        });
    });
}

result<void>
command_table::begin(std::uint64_t id, wire::ExecSpec::Reader spec, command::manner how) {
  auto request = command_request::read(spec);
  if (!request)
    return request.error();
  const auto running = std::count_if(entries_.begin(), entries_.end(),
                                     [](const auto& e) { return !e.second.run->ended(); });
  if (running >= reaper::commands_max || entries_.size() >= commands_max)
    return error{errc::exhausted,
                 "start exec " + std::to_string(id) + ": " + std::to_string(running)
                   + " run (limit " + std::to_string(reaper::commands_max) + ") and "
                   + std::to_string(entries_.size()) + " are not acknowledged (limit "
                   + std::to_string(commands_max) + ")"};
  const auto user = request->user;
  auto run = kj::refcounted<command>(around_, id, std::move(*request), how);
  auto* made = run.get();
  const bool watched = how != command::manner::collected;
  if (auto who = user_by_number(user)) {
    if (auto ok = start(*made, *who); !ok)
      return ok;
    if (!watched) {
      entries_.emplace(id, entry{kj::mv(run), nullptr});
      return {};
    }
  }
  kj::Promise<result<void>> starting = result<void>{};
  if (!user_by_number(user))
    starting = resolve_user_inside(files_, user).then([this, made](result<identity>&& who) {
      return who ? start(*made, *who) : result<void>{who.error()};
    });
  if (watched)
    starting = starting.then([made](result<void>&& ok) -> kj::Promise<result<void>> {
      if (!ok)
        return kj::mv(ok);
      return made->started();
    });
  starting = starting.then([this, made, kept = kj::addRef(*run)](result<void>&& ok) {
    // The entry holds the promise this runs in, so it goes in the next turn.
    if (!ok)
      kj::evalLater([this, kept = kj::addRef(*made)] {
        erase(kept->id(), *kept);
      }).detach([](kj::Exception&&) {});
    return kj::mv(ok);
  });
  entries_.emplace(id, entry{kj::mv(run), starting.fork()});
  return {};
}

void command_table::erase(std::uint64_t id, const command& run) {
  auto found = entries_.find(id);
  if (found != entries_.end() && found->second.run.get() == &run)
    entries_.erase(found);
}

kj::Maybe<kj::Own<command>> command_table::find(std::uint64_t id) {
  auto found = entries_.find(id);
  if (found == entries_.end())
    return nullptr;
  return kj::addRef(*found->second.run);
}

void command_table::forget(std::uint64_t id) {
  std::erase_if(forgotten_, [](const auto& run) { return run->silent(); });
  auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.run->ended())
    return;
  found->second.run->drop_spool();
  if (!found->second.run->silent())
    forgotten_.push_back(kj::mv(found->second.run));
  entries_.erase(found);
}

std::vector<std::uint64_t> command_table::ids() const {
  std::vector<std::uint64_t> all;
  for (const auto& [id, e] : entries_)
    all.push_back(id);
  return all;
}

bool command_table::owes_nobody() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const auto& e) { return e.second.run->owes_nobody(); });
}

std::vector<std::uint64_t> command_table::running_ids() const {
  std::vector<std::uint64_t> running;
  for (const auto& [id, e] : entries_)
    if (!e.run->ended())
      running.push_back(id);
  return running;
}

void command_table::told(const reaper::event& event) {
  if (auto found = entries_.find(event.exec_id); found != entries_.end())
    found->second.run->told(event);
}

result<void> command_table::start(command& run, const identity& who) {
  if (!settled_)
    return run.start(who);
  // There is nobody any more to start it.
  run.settle(settled_->first, settled_->second);
  return {};
}

void command_table::settle_all(wire::Outcome::Kind kind, const std::string& cause) {
  settled_.emplace(kind, cause);
  for (auto& [id, e] : entries_)
    e.run->settle(kind, cause);
}

void command_table::freeze_clocks() {
  for (auto& [id, e] : entries_)
    e.run->freeze_clock();
}

void command_table::thaw_clocks() {
  for (auto& [id, e] : entries_)
    e.run->thaw_clock();
}

} // namespace dsec::init
