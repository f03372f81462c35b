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
#include <chrono>
#include <utility>

namespace dsec {

/// To a follower: there may be more.
struct events_committed {};

} // namespace dsec

DSEC_MESSAGE(events_committed)

namespace dsec {

namespace {

constexpr std::uint64_t page_events = 1000;

/// Of a job that is closed and whose sandboxes end yet, until it is asked again.
constexpr std::chrono::milliseconds ending_pause{100};

/// The same if nobody could say.
constexpr std::chrono::milliseconds unknown_pause{1000};

struct reader_data {
  static constexpr const char* name = "event_reader";

  job_id job;
  std::uint64_t next = 1;
  journal_actor journal;
  cluster_actor cluster;
  std::shared_ptr<event_listener> listener;
  std::shared_ptr<std::atomic<bool>> woken;
  std::shared_ptr<std::atomic<bool>> closing;
  bool asking = false;
  bool looking = false; ///< Whether the job has come to its end.
  /// Whatever happened in the job is in the journal: the next page that is empty is the end.
  bool all_written = false;
  bool over_told = false; ///< And nothing has happened since.
};

using reader = caf::stateful_actor<reader_data>;

void read(reader* self);

/// Looks again whether the job has come to its end.
void look_after(reader* self, std::chrono::milliseconds pause) {
  self->state.looking = false;
  self->state.closing->store(true);
  self->delayed_send(self, pause, events_committed{});
}

/// It has not, and will say when; it may have done so meanwhile.
void look_no_more(reader* self) {
  auto& data = self->state;
  data.looking = false;
  data.over_told = false;
  if (data.closing->load() && !data.asking)
    read(self);
}

/// Whether sandboxes of the job, which is closed, live yet.
void look_for_sandboxes(reader* self, const job_actor& job) {
  self->request(job, caf::infinite, inventory_query{self->state.job, false})
    .then(
      [self](const inventory_ptr& live) {
        auto& now = self->state;
        if (!live->sandboxes.empty())
          return look_after(self, ending_pause);
        now.looking = false;
        now.all_written = true;
        // A page that was asked for before may lack the last events.
        if (now.asking)
          now.woken->store(true);
        else
          read(self);
      },
      [self](const caf::error&) { look_after(self, unknown_pause); });
}

void look_for_the_end(reader* self) {
  auto unknown = [self](const caf::error&) {
    look_after(self, unknown_pause);
  };
  auto& data = self->state;
  data.looking = true;
  self->request(data.cluster, caf::infinite, find_job{data.job})
    .then(
      [self, unknown](const job_actor& job) {
        self->request(job, caf::infinite, job_request{})
          .then(
            [self, job](const job_record& x) {
              if (x.state == job_state::closed)
                look_for_sandboxes(self, job);
              else
                look_no_more(self);
            },
            unknown);
      },
      unknown);
}

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
        if (!page->events.empty())
          now.over_told = false;
        if (!page->events.empty() || now.woken->load())
          return read(self);
        if (std::exchange(now.all_written, false) && !std::exchange(now.over_told, true)
            && !now.listener->tell_over())
          return self->quit();
        if (now.listener->awaits_over() && !now.looking && now.closing->exchange(false))
          look_for_the_end(self);
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

template <class Call>
bool event_listener::unless_closed(Call call) {
  {
    std::scoped_lock lock{mutex_};
    if (closed_)
      return false;
    caller_ = std::this_thread::get_id();
  }
  auto returned = [](event_listener* self) {
    std::scoped_lock lock{self->mutex_};
    self->caller_ = {};
    self->returned_.notify_all();
  };
  // Also if it throws, which ends the reader: nobody waits for it then.
  std::unique_ptr<event_listener, decltype(returned)> under_way{this, returned};
  call();
  return true;
}

bool event_listener::tell(const job_event& x) {
  return unless_closed([&] { call_(x); });
}

bool event_listener::tell_over() {
  return unless_closed([&] { over_(); });
}

void event_listener::close() {
  std::unique_lock lock{mutex_};
  closed_ = true;
  if (caller_ == std::this_thread::get_id())
    return;
  returned_.wait(lock, [this] { return caller_ == std::thread::id{}; });
  auto unused = std::move(call_);
  auto unused_too = std::move(over_);
  lock.unlock();
}

std::uint64_t
event_followers::add(const job_id& job, std::uint64_t cursor, std::shared_ptr<event_listener> to) {
  std::scoped_lock lock{mutex_};
  followers_.emplace(++newest_, follower{job, cursor, std::move(to), {}});
  return newest_;
}

void event_followers::begin(std::uint64_t number, caf::event_based_actor* host,
                            journal_actor journal, cluster_actor cluster) {
  std::scoped_lock lock{mutex_};
  auto at = followers_.find(number);
  if (at == followers_.end() || closed_)
    return;
  auto& x = at->second;
  reader_data first;
  first.job = x.job;
  first.next = x.cursor;
  first.journal = std::move(journal);
  first.cluster = std::move(cluster);
  first.listener = x.listener;
  first.woken = x.woken;
  first.closing = x.closing;
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
    auto closes = [&of = x.job](const write_batch_ptr& batch) {
      return std::ranges::any_of(batch->jobs, [&](const job_record& job) {
        return job.id == of && job.state == job_state::closed;
      });
    };
    auto tells = [&of = x.job](const write_batch_ptr& batch) {
      return std::ranges::find(batch->events, of, &job_event::job) != batch->events.end();
    };
    const bool closed = std::ranges::any_of(batches, closes);
    if (closed)
      x.closing->store(true);
    if (x.reader && (closed || std::ranges::any_of(batches, tells)) && !x.woken->exchange(true))
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

event_subscription job::follow(std::uint64_t cursor, std::function<void(const job_event&)> listener,
                               std::function<void()> over) const {
  auto followers = state_->core->followers();
  event_subscription made;
  made.state_ = std::make_shared<event_subscription::state>();
  made.state_->listener = std::make_shared<event_listener>(std::move(listener), std::move(over));
  made.state_->home = followers;
  auto number = followers->add(state_->id, cursor, made.state_->listener);
  made.state_->follower = number;
  state_->core->post([followers, number](requester* self) {
    followers->begin(number, self, self->state.journal, self->state.cluster);
  });
  return made;
}

} // namespace dsec
