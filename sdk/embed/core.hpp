#pragma once

#include "actors/errors.hpp"
#include "actors/plane.hpp"
#include "sdk/embed/future.hpp"
#include "sdk/embed/tree_workers.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/sec.hpp>
#include <caf/stateful_actor.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

/// Inside libdsec: how calls of any thread become requests of one actor, and answers become
/// futures.

namespace dsec {

struct requester_data {
  static constexpr const char* name = "requester";

  cluster_actor cluster;
  journal_actor journal;
  /// Whoever was asked before, for as long as its node keeps it: a sandbox that has ended is held
  /// by nobody who might ask again.
  std::unordered_map<sandbox_id, caf::actor_addr> sandboxes;
  std::map<caf::actor_addr, sandbox_id> watched;
  std::unordered_map<job_id, job_actor> jobs;
};

using requester = caf::stateful_actor<requester_data>;

class event_followers;
class runtime_core;

/// An answer that a caller waits for. The last copy that goes unpaid answers `unavailable`.
template <class T>
class debt {
public:
  debt(std::shared_ptr<runtime_core> core, future<T> to);
  void pay(result<T> x) const;

private:
  struct held;
  std::shared_ptr<held> held_;
};

/// What handles share with their runtime, and what is left of it when it is closed.
class runtime_core : public std::enable_shared_from_this<runtime_core> {
public:
  using work = std::function<void(requester*)>;

  runtime_core(caf::actor_system& system, const plane& target,
               std::shared_ptr<event_followers> followers);

  /// Runs `use(requester, debt)` in the requester; `unavailable` once closed. Any thread.
  template <class T, class Use>
  future<T> ask(Use use) {
    future<T> answer;
    debt<T> owed{shared_from_this(), answer};
    post([use = std::move(use), owed](requester* self) { use(self, owed); });
    return answer;
  }

  void post(work call);

  /// From now on every call and every unanswered one is `unavailable`.
  void close();

  static error closed_error();

  const std::shared_ptr<event_followers>& followers() const {
    return followers_;
  }

  tree_workers& workers() {
    return workers_;
  }

  std::uint64_t next_ticket() {
    return ++ticket_;
  }

private:
  template <class T>
  friend class debt;

  std::uint64_t enlist(std::function<void()> fail);
  void strike(std::uint64_t entry);

  std::mutex mutex_;
  bool closed_ = false;
  caf::actor requester_;
  std::uint64_t entry_ = 0;
  std::unordered_map<std::uint64_t, std::function<void()>> unanswered_;
  std::atomic<std::uint64_t> ticket_{0};
  const std::shared_ptr<event_followers> followers_;
  tree_workers workers_;
};

template <class T>
struct debt<T>::held {
  std::shared_ptr<runtime_core> core;
  future<T> to;
  std::uint64_t entry = 0;
  std::atomic<bool> paid{false};

  ~held() {
    if (paid.exchange(true))
      return;
    core->strike(entry);
    to.fulfill(runtime_core::closed_error());
  }
};

template <class T>
debt<T>::debt(std::shared_ptr<runtime_core> core, future<T> to) : held_{std::make_shared<held>()} {
  held_->core = core;
  held_->to = to;
  held_->entry = core->enlist([to] { to.fulfill(runtime_core::closed_error()); });
}

template <class T>
void debt<T>::pay(result<T> x) const {
  if (held_->paid.exchange(true))
    return;
  held_->core->strike(held_->entry);
  held_->to.fulfill(std::move(x));
}

/// `x`, naming the sandbox that it is about if it does not do so itself.
error about(const sandbox_id& id, error x);

/// Why nothing can be asked of a sandbox that has ended.
error ended_error(const sandbox_info& tombstone);

/// Finds the sandbox's actor and calls `use(actor)`, or `fail(error, tombstone or null)`. In the
/// requester.
void with_sandbox(requester* self, const sandbox_id& id, std::function<void(sandbox_actor)> use,
                  std::function<void(const error&, const sandbox_info*)> fail);

/// Sends `message` to the sandbox and hands the answer to `use`, failures to `fail`. An actor that
/// has ended, or died, since it was found is looked for once more. In the requester.
template <class Answer, class Message>
void ask_sandbox(requester* self, const sandbox_id& id, Message message,
                 std::function<void(const Answer&)> use,
                 std::function<void(const error&, const sandbox_info*)> fail, int attempt = 0) {
  with_sandbox(
    self, id,
    [=](sandbox_actor target) {
      self->request(target, caf::infinite, message)
        .then([use](const Answer& x) { use(x); },
              [=](const caf::error& e) {
                if (e == caf::sec::request_receiver_down && attempt == 0) {
                  self->state.sandboxes.erase(id);
                  return ask_sandbox<Answer>(self, id, message, use, fail, attempt + 1);
                }
                fail(about(id, from_caf(e, "sandbox " + id.str())), nullptr);
              });
    },
    fail);
}

} // namespace dsec
