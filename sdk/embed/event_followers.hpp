#pragma once

#include "actors/protocol.hpp"
#include "sdk/embed/runtime.hpp"

#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dsec {

/// Between a subscription and the actor that reads for it: whether its listener may be called.
class event_listener {
public:
  event_listener(std::function<void(const job_event&)> call, std::function<void()> over)
    : call_{std::move(call)},
      over_{std::move(over)} {}

  /// Calls the listener; false once it is closed.
  bool tell(const job_event& x);

  /// Says that all has been told of a job that is closed; false once it is closed.
  bool tell_over();

  /// Whether anybody wants to hear that.
  bool awaits_over() const {
    return wants_over_;
  }

  /// The listener is not called again. Waits for a call under way, unless it is within it.
  void close();

private:
  template <class Call>
  bool unless_closed(Call call);

  std::mutex mutex_;
  std::condition_variable returned_;
  std::function<void(const job_event&)> call_;
  std::function<void()> over_;
  const bool wants_over_ = static_cast<bool>(over_);
  std::thread::id caller_; ///< Of the call under way.
  bool closed_ = false;
};

/// Everybody who follows the events of a job. One actor with a thread of its own reads for each,
/// page by page, so that a slow listener keeps nobody but itself waiting. Any thread.
class event_followers {
public:
  /// What begins to be read for once `begin` is called.
  std::uint64_t add(const job_id& job, std::uint64_t cursor, std::shared_ptr<event_listener> to);

  /// In an actor: a thread that is not CAF's and spawns one keeps the actor system from ending.
  void begin(std::uint64_t follower, caf::event_based_actor* host, journal_actor journal,
             cluster_actor cluster);

  void remove(std::uint64_t follower);

  /// What is in those batches is in the journal.
  void committed(const std::vector<write_batch_ptr>& batches);

  /// Ends all of them, now and later; the actor system waits for calls under way.
  void close();

private:
  struct follower {
    job_id job;
    std::uint64_t cursor = 1;
    std::shared_ptr<event_listener> listener;
    caf::actor reader; ///< Null before it has begun.
    /// It has been told of events since it last asked for them.
    std::shared_ptr<std::atomic<bool>> woken = std::make_shared<std::atomic<bool>>(false);
    /// The job may be closed: it is to be asked when no more events are to be had.
    std::shared_ptr<std::atomic<bool>> closing = std::make_shared<std::atomic<bool>>(true);
  };

  std::mutex mutex_;
  bool closed_ = false;
  std::map<std::uint64_t, follower> followers_;
  std::uint64_t newest_ = 0;
};

struct event_subscription::state {
  std::shared_ptr<event_listener> listener;
  std::weak_ptr<event_followers> home;
  std::uint64_t follower = 0;

  ~state();
};

} // namespace dsec
