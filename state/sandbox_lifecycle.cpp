#include "state/sandbox_lifecycle.hpp"

#include <initializer_list>

namespace dsec {

namespace {

constexpr auto state_count = static_cast<std::size_t>(sandbox_state::lost) + 1;

constexpr bool each_pair_appears_once() {
  for (const auto& a : sandbox_transitions) {
    int count = 0;
    for (const auto& b : sandbox_transitions)
      count += a.from == b.from && a.on == b.on;
    if (count != 1)
      return false;
  }
  return true;
}

constexpr bool nothing_leaves(sandbox_state x) {
  for (const auto& t : sandbox_transitions)
    if (t.from == x)
      return false;
  return true;
}

constexpr bool every_state_is_reached_from(sandbox_state origin) {
  std::array<bool, state_count> seen{};
  seen[static_cast<std::size_t>(origin)] = true;
  for (std::size_t round = 0; round < state_count; ++round)
    for (const auto& t : sandbox_transitions)
      if (seen[static_cast<std::size_t>(t.from)])
        seen[static_cast<std::size_t>(t.to)] = true;
  for (bool x : seen)
    if (!x)
      return false;
  return true;
}

/// Stop wins from everywhere but from where it has won already.
constexpr bool every_state_can_end() {
  for (std::size_t i = 0; i < state_count; ++i) {
    auto x = static_cast<sandbox_state>(i);
    bool ending = x == sandbox_state::stopping || x == sandbox_state::terminated;
    if (!ending && next(x, sandbox_event::stop) != sandbox_state::stopping)
      return false;
  }
  return next(sandbox_state::stopping, sandbox_event::stopped) == sandbox_state::terminated;
}

static_assert(each_pair_appears_once());
static_assert(nothing_leaves(sandbox_state::terminated));
static_assert(every_state_is_reached_from(sandbox_state::pending));
static_assert(every_state_can_end());

} // namespace

std::string_view to_string(sandbox_state x) {
  switch (x) {
  case sandbox_state::pending:
    return "pending";
  case sandbox_state::starting:
    return "starting";
  case sandbox_state::running:
    return "running";
  case sandbox_state::pausing:
    return "pausing";
  case sandbox_state::paused:
    return "paused";
  case sandbox_state::reclaiming:
    return "reclaiming";
  case sandbox_state::reclaimed:
    return "reclaimed";
  case sandbox_state::resuming:
    return "resuming";
  case sandbox_state::stopping:
    return "stopping";
  case sandbox_state::terminated:
    return "terminated";
  case sandbox_state::failed:
    return "failed";
  case sandbox_state::lost:
    return "lost";
  }
  return "unknown";
}

std::string_view to_string(sandbox_event x) {
  switch (x) {
  case sandbox_event::start:
    return "start";
  case sandbox_event::started:
    return "started";
  case sandbox_event::pause:
    return "pause";
  case sandbox_event::paused:
    return "paused";
  case sandbox_event::reclaim:
    return "reclaim";
  case sandbox_event::reclaimed:
    return "reclaimed";
  case sandbox_event::resume:
    return "resume";
  case sandbox_event::resumed:
    return "resumed";
  case sandbox_event::stop:
    return "stop";
  case sandbox_event::stopped:
    return "stopped";
  case sandbox_event::fault:
    return "fault";
  case sandbox_event::node_gone:
    return "node_gone";
  case sandbox_event::found_running:
    return "found_running";
  case sandbox_event::found_paused:
    return "found_paused";
  case sandbox_event::found_reclaimed:
    return "found_reclaimed";
  }
  return "unknown";
}

} // namespace dsec
