#pragma once

#include "state/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsec {

/// What became of a command. A value, never an error: a reward function must tell these apart.
enum class outcome_kind : std::uint8_t {
  exited,     ///< `code` is the exit code.
  signalled,  ///< `code` is the signal; sent from inside, or through `signal`.
  timed_out,  ///< Its deadline passed; the process tree was killed.
  cancelled,  ///< The caller cancelled it.
  oom_killed, ///< The kernel killed the main process at the sandbox's memory limit.
  pids_limit, ///< It could not start, or failed after a fork of it was refused (`code` is its exit
              ///< code): the sandbox's process limit is reached.
  disk_full,  ///< It failed while the sandbox's disk limit was reached; `code` is the exit code.
  self_inflicted,  ///< The agent destroyed its own sandbox's means to run.
  sandbox_stopped, ///< The sandbox was stopped while it ran, or before it could; `cause` says why.
  node_lost, ///< Whoever ran it for this caller is gone, and nobody can be asked again: what became
             ///< of it is unknown. Never of a recorded step, and never recorded.
  infrastructure, ///< Our fault; `cause` says which. Never the agent's doing.
  budget_spent,   ///< The sandbox's rollout budget ran out while it ran.
  expired,        ///< The sandbox's time to live ran out while it ran.
};

inline constexpr auto outcome_kind_last = outcome_kind::expired;

std::string_view to_string(outcome_kind x);

struct outcome {
  outcome_kind kind = outcome_kind::infrastructure;
  std::int32_t code = 0;
  /// oom_killed: memory limit and peak. disk_full: disk limit and use.
  std::uint64_t limit_bytes = 0;
  std::uint64_t peak_bytes = 0;
  /// For a person. oom_killed: whom the kernel killed. Whatever ended with its sandbox: by what
  /// that was ended. node_lost, infrastructure: what happened. Else empty, or what else is known.
  std::string cause;

  friend bool operator==(const outcome&, const outcome&) = default;
};

struct exec_result {
  dsec::outcome outcome;
  /// The first `exec_spec::spool_bytes` of each stream, byte-exact.
  std::string out;
  std::string err;
  /// What the command really wrote. More than `out.size()` means that `out` is truncated.
  std::uint64_t out_bytes = 0;
  std::uint64_t err_bytes = 0;
  /// Processes of this command, children and background children included, that the kernel killed
  /// for memory while it ran.
  std::uint32_t oom_kills = 0;
  std::chrono::milliseconds duration{0};
  /// The step was recorded before; nothing ran.
  bool replayed = false;

  /// Exited with code 0.
  bool ok() const noexcept {
    return outcome.kind == outcome_kind::exited && outcome.code == 0;
  }

  friend bool operator==(const exec_result&, const exec_result&) = default;
};

/// One command to run in a sandbox.
struct exec_spec {
  /// argv[0] without a slash is looked up in PATH. At least one element; the whole of argv and env
  /// at most 2 MiB, one element at most 128 KiB (the kernel's limit).
  std::vector<std::string> argv;
  /// Added to the environment's own variables, overriding them.
  std::vector<std::pair<std::string, std::string>> env;
  /// Empty: the environment's working directory.
  std::string cwd;
  /// Empty: the environment's user. "name", "uid", "name:group", "uid:gid".
  std::string user;
  /// Empty optional: standard input is empty.
  std::optional<std::string> stdin_bytes;
  /// Running time, frozen time excluded. Zero: none.
  std::chrono::milliseconds deadline{0};
  /// Kept of each stream, at most 8 MiB.
  std::uint64_t spool_bytes = 1 << 20;
  /// Position in the rollout's trajectory. With it the exec is recorded and runs exactly once.
  std::optional<std::uint64_t> step;

  /// `/bin/sh -c script`, from the image.
  static exec_spec shell(std::string script);
};

/// SHA-256 (hex) of everything in `spec` that decides what runs; the step number is not part of it.
std::string request_digest(const exec_spec& spec);

/// invalid_argument with field, value and limit, or nothing.
result<void> validate(const exec_spec& spec);

} // namespace dsec
