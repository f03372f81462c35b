#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dsec {

enum class sandbox_state : std::uint8_t {
  pending,    ///< Recorded; nothing of it exists yet.
  starting,   ///< The spawner builds it.
  running,    ///< dsec-init answers; commands run.
  pausing,    ///< Asked to freeze.
  paused,     ///< Every process frozen, memory resident.
  reclaiming, ///< Its memory is being written to swap.
  reclaimed,  ///< Frozen, memory given back, execution state kept.
  resuming,   ///< Asked to thaw.
  stopping,   ///< Being torn down; its resources are still held.
  terminated, ///< Nothing of it exists any more. Nothing leaves this state.
  failed,     ///< Broken with a typed cause; resources held until the tear-down that follows.
  lost,       ///< Its node is gone; its fate unknown.
};

enum class sandbox_event : std::uint8_t {
  start,
  started,
  pause,
  paused,
  reclaim,
  reclaimed,
  resume,
  resumed,
  stop,
  stopped,
  fault,
  node_gone,
  found_running,   ///< Recovery: dsec-init says so.
  found_paused,    ///< Recovery or lease expiry.
  found_reclaimed, ///< Recovery or lease expiry.
};

struct sandbox_transition {
  sandbox_state from;
  sandbox_event on;
  sandbox_state to;
};

/// The whole lifecycle. A pair that is absent is illegal: no other code decides what may follow
/// what.
inline constexpr auto sandbox_transitions = [] {
  using S = sandbox_state;
  using E = sandbox_event;
  // clang-format off
  return std::to_array<sandbox_transition>({
    {S::pending,    E::start,           S::starting},
    {S::pending,    E::stop,            S::stopping},
    {S::pending,    E::fault,           S::failed},
    {S::starting,   E::started,         S::running},
    {S::starting,   E::stop,            S::stopping},
    {S::starting,   E::fault,           S::failed},
    {S::starting,   E::node_gone,       S::lost},
    {S::running,    E::pause,           S::pausing},
    {S::running,    E::stop,            S::stopping},
    {S::running,    E::fault,           S::failed},
    {S::running,    E::node_gone,       S::lost},
    {S::running,    E::found_running,   S::running},
    {S::running,    E::found_paused,    S::paused},
    {S::running,    E::found_reclaimed, S::reclaimed},
    {S::pausing,    E::paused,          S::paused},
    {S::pausing,    E::stop,            S::stopping},
    {S::pausing,    E::fault,           S::failed},
    {S::pausing,    E::node_gone,       S::lost},
    {S::pausing,    E::found_running,   S::running},
    {S::pausing,    E::found_paused,    S::paused},
    {S::pausing,    E::found_reclaimed, S::reclaimed},
    {S::paused,     E::reclaim,         S::reclaiming},
    {S::paused,     E::resume,          S::resuming},
    {S::paused,     E::stop,            S::stopping},
    {S::paused,     E::fault,           S::failed},
    {S::paused,     E::node_gone,       S::lost},
    {S::paused,     E::found_running,   S::running},
    {S::paused,     E::found_paused,    S::paused},
    {S::paused,     E::found_reclaimed, S::reclaimed},
    {S::reclaiming, E::reclaimed,       S::reclaimed},
    {S::reclaiming, E::paused,          S::paused},   // The memory could not be given back; still frozen.
    {S::reclaiming, E::stop,            S::stopping},
    {S::reclaiming, E::fault,           S::failed},
    {S::reclaiming, E::node_gone,       S::lost},
    {S::reclaiming, E::found_running,   S::running},
    {S::reclaiming, E::found_paused,    S::paused},
    {S::reclaiming, E::found_reclaimed, S::reclaimed},
    {S::reclaimed,  E::resume,          S::resuming},
    {S::reclaimed,  E::stop,            S::stopping},
    {S::reclaimed,  E::fault,           S::failed},
    {S::reclaimed,  E::node_gone,       S::lost},
    {S::reclaimed,  E::found_running,   S::running},
    {S::reclaimed,  E::found_paused,    S::paused},
    {S::reclaimed,  E::found_reclaimed, S::reclaimed},
    {S::resuming,   E::resumed,         S::running},
    {S::resuming,   E::stop,            S::stopping},
    {S::resuming,   E::fault,           S::failed},
    {S::resuming,   E::node_gone,       S::lost},
    {S::resuming,   E::found_running,   S::running},
    {S::resuming,   E::found_paused,    S::paused},
    {S::resuming,   E::found_reclaimed, S::reclaimed},
    {S::stopping,   E::stopped,         S::terminated},
    {S::stopping,   E::node_gone,       S::lost},
    {S::failed,     E::stop,            S::stopping},
    {S::failed,     E::node_gone,       S::lost},
    {S::lost,       E::stop,            S::stopping},
    {S::lost,       E::found_running,   S::running},
    {S::lost,       E::found_paused,    S::paused},
    {S::lost,       E::found_reclaimed, S::reclaimed},
    {S::lost,       E::fault,           S::failed},
  });
  // clang-format on
}();

constexpr std::optional<sandbox_state> next(sandbox_state from, sandbox_event on) {
  for (const auto& t : sandbox_transitions)
    if (t.from == from && t.on == on)
      return t.to;
  return std::nullopt;
}

std::string_view to_string(sandbox_state x);

std::string_view to_string(sandbox_event x);

} // namespace dsec
