#include "sdk/embed/event_followers.hpp"

#include "actors/errors.hpp"
#include "sdk/embed/handles.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace dsec {

/// To a follower: there may be more.
struct events_committed {};

} // namespace dsec

DSEC_MESSAGE(events_committed)

namespace dsec {

namespace {

constexpr std::uint64_t page_events = 1000;

struct reader_data {
  static constexpr const char* name = "event_reader";

  job_id job;
  std::uint64_t next = 1;
  journal_actor journal;
  std::shared_ptr<event_listener> listener;
  std::shared_ptr<std::atomic<bool>> woken;
  bool asking = false;
};

using reader = caf::stateful_actor<reader_data>;

/// Takes a page, and another one for as long as there are any.
void read(reader* self) {
  auto& data = self->state;
  data.asking = true;
  data.woken->store(false);
  self->request(data.journal, caf::infinite, load_events{data.job, data.next, page_events})
    .then(
      [self](const event_page_ptr& page) {
        auto& now = self->state;
        now.asking = false;
        for (const auto& x : page->events)
          if (!now.listener->tell(x))
            return self->quit();
        now.next = page->next;
        if (!page->events.empty() || now.woken->load())
          read(self);
      },
      [self](const caf::error& cause) {
        auto& now = self->state;
        auto why = from_caf(cause, "the journal");
        spdlog::error("events.unread job {} from {}: {}", now.job, now.next, why.message);
        self->quit();
      });
}

caf::behavior serve_reader(reader* self, reader_data begin) {
  self->state = std::move(begin);
  read(self);
  return {[self](const events_committed&) {
    if (!self->state.asking)
      read(self);
  }};
}

} // namespace

bool event_listener::tell(const job_event& x) {
  {
    std::scoped_lock lock{mutex_};
    if (closed_)
      return false;
    caller_ = std::this_thread::get_id();
  }
  auto returned = [this](const job_event*) {
    std::scoped_lock lock{mutex_};
    caller_ = {};
    returned_.notify_all();
  };
  // Also if it throws, which ends the reader: nobody waits for it then.
  std::unique_ptr<const job_event, decltype(returned)> call{&x, returned};
  call_(x);
  return true;
}

void event_listener::close() {
  std::unique_lock lock{mutex_};
  closed_ = true;
  if (caller_ == std::this_thread::get_id())
    return;
  returned_.wait(lock, [this] { return caller_ == std::thread::id{}; });
  auto unused = std::move(call_);
  lock.unlock();
}

std::uint64_t
event_followers::add(const job_id& job, std::uint64_t cursor, std::shared_ptr<event_listener> to) {
  std::scoped_lock lock{mutex_};
  followers_.emplace(++newest_, follower{job, cursor, std::move(to), {}});
  return newest_;
}

void event_followers::begin(std::uint64_t number, caf::event_based_actor* host,
                            journal_actor journal) {
  std::scoped_lock lock{mutex_};
  auto at = followers_.find(number);
  if (at == followers_.end() || closed_)
    return;
  auto& x = at->second;
  reader_data first{x.job, x.cursor, std::move(journal), x.listener, x.woken, false};
  x.reader = caf::actor{host->spawn<caf::detached>(serve_reader, std::move(first))};
}

void event_followers::remove(std::uint64_t number) {
  std::scoped_lock lock{mutex_};
  auto gone = followers_.extract(number);
  if (!gone.empty() && gone.mapped().reader)
    caf::anon_send_exit(gone.mapped().reader, caf::exit_reason::user_shutdown);
}

void event_followers::committed(const std::vector<write_batch_ptr>& batches) {
  std::scoped_lock lock{mutex_};
  for (const auto& [number, x] : followers_) {
    auto concerned = [&of = x.job](const write_batch_ptr& batch) {
      return std::ranges::find(batch->events, of, &job_event::job) != batch->events.end();
    };
    if (x.reader && std::ranges::any_of(batches, concerned) && !x.woken->exchange(true))
      caf::anon_send(x.reader, events_committed{});
  }
}

void event_followers::close() {
  std::scoped_lock lock{mutex_};
  closed_ = true;
  for (const auto& [number, x] : followers_)
    if (x.reader)
      caf::anon_send_exit(x.reader, caf::exit_reason::user_shutdown);
  followers_.clear();
}

event_subscription::state::~state() {
  listener->close();
  if (auto at = home.lock())
    at->remove(follower);
}

event_subscription::event_subscription(event_subscription&&) noexcept = default;
event_subscription& event_subscription::operator=(event_subscription&&) noexcept = default;
event_subscription::~event_subscription() = default;

future<event_page> job::events(std::uint64_t cursor, std::uint64_t count) const {
  load_events wanted{state_->id, cursor, std::min(count, page_events)};
  return state_->core->ask<event_page>([=](requester* self, const debt<event_page>& owed) {
    self->request(self->state.journal, caf::infinite, wanted)
      .then([=](const event_page_ptr& page) { owed.pay(*page); },
            [=](const caf::error& e) { owed.pay(from_caf(e, "the journal")); });
  });
}

event_subscription
job::follow(std::uint64_t cursor, std::function<void(const job_event&)> listener) const {
  auto followers = state_->core->followers();
  event_subscription made;
  made.state_ = std::make_shared<event_subscription::state>();
  made.state_->listener = std::make_shared<event_listener>(std::move(listener));
  made.state_->home = followers;
  auto number = followers->add(state_->id, cursor, made.state_->listener);
  made.state_->follower = number;
  state_->core->post(
    [followers, number](requester* self) { followers->begin(number, self, self->state.journal); });
  return made;
}

} // namespace dsec
