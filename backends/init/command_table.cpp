#include "backends/init/command_table.hpp"

#include <algorithm>

namespace dsec::init {

namespace {

/// Ended and not yet acknowledged ones included; each may hold its spool.
constexpr std::size_t commands_max = 4096;

} // namespace

kj::Promise<result<kj::Own<command>>> command_table::join(std::uint64_t id) {
  auto& found = entries_.at(id);
  return found.started.addBranch().then(
    [run = kj::addRef(*found.run)](result<void>&& ok) mutable -> result<kj::Own<command>> {
      if (!ok)
        return ok.error();
      return kj::mv(run);
    });
}

kj::Promise<result<kj::Own<command>>>
command_table::exec(std::uint64_t id, wire::ExecSpec::Reader spec) {
  if (entries_.contains(id))
    return join(id);
  auto request = command_request::read(spec);
  if (!request)
    return result<kj::Own<command>>{request.error()};
  const auto running = std::count_if(entries_.begin(), entries_.end(),
                                     [](const auto& e) { return !e.second.run->ended(); });
  if (running >= reaper::mains_max || entries_.size() >= commands_max)
    return result<kj::Own<command>>{
      error{errc::exhausted, "start exec " + std::to_string(id) + ": " + std::to_string(running)
                               + " run (limit " + std::to_string(reaper::mains_max) + ") and "
                               + std::to_string(entries_.size()) + " are not acknowledged (limit "
                               + std::to_string(commands_max) + ")"}};
  auto user = request->user;
  auto run = kj::refcounted<command>(around_, id, std::move(*request));
  auto* made = run.get();
  auto started =
    resolve_user_inside(files_, std::move(user))
      .then([made](result<identity>&& who) -> kj::Promise<result<void>> {
        if (!who)
          return result<void>{who.error()};
        return made->start(*who);
      })
      .then([this, id, kept = kj::addRef(*run)](result<void>&& ok) {
        // The entry holds the promise this runs in, so it goes in the next turn.
        if (!ok)
          kj::evalLater([this, id] { entries_.erase(id); }).detach([](kj::Exception&&) {});
        return kj::mv(ok);
      });
  entries_.emplace(id, entry{kj::mv(run), started.fork()});
  return join(id);
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

void command_table::told(const reaper::event& event) {
  auto found = entries_.find(event.exec_id);
  if (found != entries_.end())
    found->second.run->told(event);
}

void command_table::settle_all(wire::Outcome::Kind kind, const std::string& cause) {
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
