#include "sdk/embed/core.hpp"

#include "state/end_outcome.hpp"
#include "state/format.hpp"

#include <caf/actor_cast.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

namespace dsec {

/// A closure on its way to the requester.
struct requester_call {
  std::shared_ptr<const runtime_core::work> work;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, requester_call&) {
  return f(caf::meta::type_name("requester_call"));
}

} // namespace dsec

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::requester_call)

namespace dsec {

namespace {

caf::behavior serve_calls(requester* self, plane target) {
  self->state.cluster = target.cluster;
  self->state.journal = target.journal;
  self->set_down_handler([self](const caf::down_msg& gone) {
    auto i = self->state.watched.find(gone.source);
    if (i == self->state.watched.end())
      return;
    auto& known = self->state.sandboxes;
    // It may have another actor by now.
    if (auto at = known.find(i->second); at != known.end() && at->second == gone.source)
      known.erase(at);
    self->state.watched.erase(i);
  });
  return {[self](const requester_call& call) {
    (*call.work)(self);
  }};
}

} // namespace

runtime_core::runtime_core(caf::actor_system& system, const plane& target,
                           std::shared_ptr<event_followers> followers)
  : requester_{system.spawn(serve_calls, target)},
    followers_{std::move(followers)} {}

void runtime_core::post(work call) {
  caf::actor to;
  {
    std::scoped_lock lock{mutex_};
    // Dropped here, `call` pays its debts with `unavailable`, outside the lock.
    if (closed_)
      return;
    to = requester_;
  }
  caf::anon_send(to, requester_call{std::make_shared<const work>(std::move(call))});
}

void runtime_core::close() {
  caf::actor to;
  std::unordered_map<std::uint64_t, std::function<void()>> unanswered;
  {
    std::scoped_lock lock{mutex_};
    closed_ = true;
    to = std::move(requester_);
    requester_ = nullptr;
    unanswered.swap(unanswered_);
  }
  if (to)
    caf::anon_send_exit(to, caf::exit_reason::user_shutdown);
  for (auto& [_, fail] : unanswered)
    fail();
  // What they wait for has just been answered.
  workers_.close();
}

error runtime_core::closed_error() {
  return {errc::unavailable, "the runtime is closed"};
}

std::uint64_t runtime_core::enlist(std::function<void()> fail) {
  std::scoped_lock lock{mutex_};
  auto entry = ++entry_;
  if (!closed_)
    unanswered_.emplace(entry, std::move(fail));
  return entry;
}

void runtime_core::strike(std::uint64_t entry) {
  std::scoped_lock lock{mutex_};
  unanswered_.erase(entry);
}

error about(const sandbox_id& id, error x) {
  if (x.message.find(id.str()) == std::string::npos)
    x.message = fmt::format("sandbox {}: {}", id, x.message);
  return x;
}

error ended_error(const sandbox_info& tombstone) {
  auto detail = tombstone.detail.empty() ? std::string{} : ": " + tombstone.detail;
  return {refusal_code(tombstone.cause),
          fmt::format("{} is {} ({}){}", tombstone.id, tombstone.state, tombstone.cause, detail)};
}

void with_sandbox(requester* self, const sandbox_id& id, std::function<void(sandbox_actor)> use,
                  std::function<void(const error&, const sandbox_info*)> fail) {
  if (auto i = self->state.sandboxes.find(id); i != self->state.sandboxes.end())
    if (auto alive = caf::actor_cast<sandbox_actor>(i->second))
      return use(std::move(alive));
  self->request(self->state.cluster, caf::infinite, find_sandbox{id})
    .then(
      [=](const find_reply& found) {
        if (!found.actor)
          return fail(ended_error(found.info), &found.info);
        const auto address = found.actor.address();
        self->state.sandboxes.insert_or_assign(id, address);
        if (self->state.watched.emplace(address, id).second)
          self->monitor(found.actor);
        use(found.actor);
      },
      [=](const caf::error& e) { fail(from_caf(e, id.str()), nullptr); });
}

} // namespace dsec
