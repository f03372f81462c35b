#pragma once

#include "state/error.hpp"
#include "state/exec.hpp"
#include "state/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

/// Characters.
struct terminal_size {
  std::uint16_t rows = 24;
  std::uint16_t columns = 80;

  friend bool operator==(const terminal_size&, const terminal_size&) = default;
};

inline constexpr std::size_t process_name_bytes_max = 64;
/// Processes of one sandbox that live, or have ended and were not removed. Of those that have ended
/// the oldest make room.
inline constexpr std::size_t processes_kept_max = 256;

/// A command that is started and then lives by itself: a background process, or, with a terminal or
/// open input, a session. It outlives whoever started it and every restart of ours. When its main
/// process ends, whatever is left of its tree is killed.
struct process_spec {
  /// Empty: none. Otherwise no other process that lives in the sandbox has it; a process that has
  /// ended gives its name up. At most `process_name_bytes_max` bytes of [0-9A-Za-z._-], not of
  /// digits alone: those are ids.
  std::string name;
  /// No `step`. `stdin_bytes` is what standard input begins with. The last `spool_bytes` of each
  /// stream are kept (its scroll-back).
  exec_spec command;
  /// Standard input stays open for `write`. Otherwise it ends after `stdin_bytes`.
  bool open_input = false;
  /// A terminal of its own for input and both outputs, which are one stream then; input is open.
  std::optional<terminal_size> terminal;
};

/// invalid_argument with field, value and limit, or nothing.
result<void> validate(const process_spec& x);

struct process_info {
  exec_id id = 0;
  std::string name;
  std::vector<std::string> argv; ///< Cut, and "..." at its end, if it is longer than 4 KiB.
  bool has_terminal = false;
  std::int64_t started_ms = 0; ///< Wall clock, since the epoch.
  std::int64_t ended_ms = 0;
  std::uint64_t out_bytes = 0; ///< Written so far.
  std::uint64_t err_bytes = 0;
  std::optional<dsec::outcome> outcome; ///< Once it has ended.
};

/// Where an attachment begins.
enum class attach_from : std::uint8_t {
  start, ///< At the oldest byte that is kept, then live.
  tail,  ///< With what is written from now on.
};

std::string_view to_string(attach_from x);

} // namespace dsec
