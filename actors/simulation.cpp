#include "actors/simulation.hpp"

#include "actors/plane.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/system_messages.hpp>

#include <algorithm>
#include <utility>

namespace dsec {

void event_hash::add(std::string_view bytes) {
  for (unsigned char c : bytes) {
    hash_ ^= c;
    hash_ *= 1099511628211ull;
  }
}

void event_hash::add(std::uint64_t number) {
  for (int i = 0; i < 8; ++i) {
    hash_ ^= number >> (8 * i) & 0xff;
    hash_ *= 1099511628211ull;
  }
}

simulation::simulation(sim_time& time, std::uint64_t seed) : time_{time}, random_{seed} {
  configure(config_, 1);
  config_.set("scheduler.policy", caf::atom("testing"));
  system_ = std::make_unique<caf::actor_system>(config_);
  scheduler_ = &dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  born_ = time_.now();
  clock_born_ = scheduler_->clock().now();
}

simulation::~simulation() {
  // Timers that arm themselves again would keep the system from ending.
  forget_timers();
  settle();
  forget_timers();
}

std::int64_t simulation::wall_offset_ms() const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return duration_cast<milliseconds>(born_).count()
         - duration_cast<milliseconds>(clock_born_.time_since_epoch()).count();
}

void simulation::forget_timers() {
  scheduler_->clock().cancel_all();
}

void simulation::hash_next(caf::scheduled_actor& receiver) {
  hash_->add(static_cast<std::uint64_t>(time_.now().count()));
  hash_->add(receiver.name());
  hash_->add(static_cast<std::uint64_t>(receiver.id()));
  const auto* next = receiver.mailbox().peek();
  if (!next)
    return;
  const auto& content = next->content();
  // System messages print addresses, which name the process.
  if (content.match_elements<caf::down_msg>())
    return hash_->add("down");
  if (content.match_elements<caf::exit_msg>())
    return hash_->add("exit");
  for (std::size_t i = 0; i < content.size(); ++i)
    hash_->add(content.stringify(i));
}

void simulation::run_one() {
  auto& jobs = scheduler_->jobs;
  if (jobs.size() > 1) {
    auto drawn = random_.below(jobs.size());
    if (++choices_ == flip_at_)
      drawn = (drawn + 1) % jobs.size();
    std::swap(jobs.front(), jobs[drawn]);
  }
  ++delivered_;
  if (hash_)
    if (auto* receiver = dynamic_cast<caf::scheduled_actor*>(jobs.front()))
      hash_next(*receiver);
  scheduler_->try_run_once();
}

void simulation::settle() {
  while (scheduler_->has_job())
    run_one();
}

void simulation::step(std::size_t messages) {
  for (std::size_t i = 0; i < messages && scheduler_->has_job(); ++i)
    run_one();
}

void simulation::follow_clock() {
  // By nothing, too: a timer may be due at once.
  auto lag = (time_.now() - born_) - (scheduler_->clock().now() - clock_born_);
  scheduler_->advance_time(std::max(lag, sim_time::duration{0}));
}

std::optional<sim_time::duration> simulation::next_due() const {
  auto due = time_.next_due();
  const auto& timers = scheduler_->clock().schedule();
  if (timers.empty())
    return due;
  auto timer = born_ + (timers.begin()->first - clock_born_);
  return due ? std::min(*due, timer) : timer;
}

bool simulation::tick() {
  auto due = next_due();
  if (!due)
    return false;
  time_.advance_to(*due);
  follow_clock();
  return true;
}

bool simulation::next() {
  settle();
  bool more = tick();
  settle();
  return more;
}

void simulation::advance(std::chrono::nanoseconds by) {
  auto end = time_.now() + by;
  settle();
  for (auto due = next_due(); due && *due <= end; due = next_due())
    next();
  time_.advance_to(end);
  follow_clock();
  settle();
}

} // namespace dsec
