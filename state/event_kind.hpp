#pragma once

#include <cstdint>
#include <string_view>

namespace dsec {

/// What may happen to a sandbox of a job.
enum class event_kind : std::uint8_t {
  created,         ///< The sandbox is recorded; it starts.
  running,         ///< Commands work in it, for the first time.
  paused,          ///< Frozen, its memory resident.
  reclaimed,       ///< Frozen, its memory given back.
  resumed,         ///< It runs again.
  exec_started,    ///< `exec`; `step` if it is recorded.
  exec_ended,      ///< `exec` with `outcome`; without one it never ran, and `detail` says why.
  process_started, ///< `exec` is the process's id.
  process_ended,   ///< The same, with `outcome`; without one it is unknown.
  failed,          ///< `cause` and `detail`; what is left of it is torn down.
  stopped,         ///< Nothing of it is left; `cause` and `detail` say why.
};

inline constexpr auto event_kind_last = event_kind::stopped;

std::string_view to_string(event_kind x);

} // namespace dsec
