#pragma once

#include "backends/sim/sim_time.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace dsec {

/// A 64-bit hash over everything that was added, in order.
class event_hash {
public:
  void add(std::string_view bytes);
  void add(std::uint64_t number);

  std::uint64_t value() const noexcept {
    return hash_;
  }

private:
  std::uint64_t hash_ = 14695981039346656037ull;
};

/// An actor system on the caller's thread, in virtual time. Which of several ready actors takes its
/// next message is drawn from the seed: the same seed gives the same run.
class simulation {
public:
  /// `time` may be older than the simulation, and outlives it.
  simulation(sim_time& time, std::uint64_t seed);

  /// Whoever was spawned must have been told to end.
  ~simulation();

  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  caf::actor_system& system() {
    return *system_;
  }

  /// Added to the actors' clock: milliseconds of `time`.
  std::int64_t wall_offset_ms() const;

  /// Delivers messages until none is left; the clock stands.
  void settle();

  /// Delivers at most `messages`.
  void step(std::size_t messages);

  /// Delivers everything that is due up to `by` from now.
  void advance(std::chrono::nanoseconds by);

  /// Moves the clock to the next thing that is due, delivering nothing. false if nothing ever will
  /// be.
  bool tick();

  /// Delivers what there is, moves to the next thing that is due, and delivers that.
  bool next();

  /// Timers that are set will not fire.
  void forget_timers();

  /// From here every delivered message is hashed.
  void hash_into(event_hash* hash) {
    hash_ = hash;
  }

  /// At the n-th choice between several ready actors (from 1) another one is taken. 0: never.
  void flip_at(std::uint64_t n) {
    flip_at_ = n;
  }

  std::uint64_t delivered() const noexcept {
    return delivered_;
  }

private:
  void run_one();
  void hash_next(caf::scheduled_actor& receiver);
  void follow_clock();
  std::optional<sim_time::duration> next_due() const;

  sim_time& time_;
  sim_random random_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  sim_time::duration born_{0};
  caf::actor_clock::time_point clock_born_;
  event_hash* hash_ = nullptr;
  std::uint64_t flip_at_ = 0;
  std::uint64_t choices_ = 0;
  std::uint64_t delivered_ = 0;
};

} // namespace dsec
