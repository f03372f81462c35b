#pragma once

#include <cstdint>

/// What dsec-init and the reaper say to each other: one of these structs per SOCK_SEQPACKET
/// datagram, in native byte order, since both were built as one. Included by the freestanding
/// reaper: no library here.
namespace dsec::init::reaper {

/// The reaper's end of the socket, as the spawner must place it before the exec.
inline constexpr int socket_fd = 3;
inline constexpr std::uint32_t groups_max = 32;
/// Files of control groups, "tasks", that a child writes itself into before it starts.
inline constexpr std::uint32_t joins_max = 6;
/// Commands and processes (schemas/init.capnp) at once, and main processes of both. dsec-init
/// refuses more before it asks.
inline constexpr std::uint32_t commands_max = 1024;
inline constexpr std::uint32_t processes_max = 256;
inline constexpr std::uint32_t mains_max = commands_max + processes_max;

/// An argument block up to this size travels in the datagram itself.
inline constexpr std::uint32_t inline_bytes_max = 8 << 10;

enum class verb : std::uint32_t {
  keep = 1,    ///< keep_request: once, before the first spawn.
  spawn,       ///< spawn_request.
  signal,      ///< signal_request.
  ready,       ///< event: the reaper runs its loop.
  not_cloned,  ///< event: `value` is the errno of clone.
  not_started, ///< event: a child could not become its command; `exited` follows.
  exited,      ///< event: `value` is the exit code.
  signalled,   ///< event: `value` is the signal that ended it.
};

/// What every child needs, with its descriptors: the input of commands without one, the socket of
/// births, then the control group files (at most `joins_max`) that each child joins.
struct keep_request {
  verb what = verb::keep;
  std::uint32_t join_count = 0;
};

/// Which descriptors follow the two output streams of a spawn, in this order.
enum spawn_flags : std::uint32_t {
  has_block = 1, ///< The block, when it is too large for the datagram.
  has_input = 2,
  has_status = 4, ///< Closes by itself when the command starts or the child ends.
  /// The control group, a directory, of this command and of those after it, and behind it the
  /// files (at most `group_joins_max`) that they join beside it.
  has_group = 8,
  /// No descriptor: the input is a terminal, which becomes the one of the command's session.
  has_terminal = 16,
};

inline constexpr std::uint32_t group_joins_max = 2;
inline constexpr std::uint32_t descriptors_max = 8;

struct spawn_request {
  verb what = verb::spawn;
  std::uint32_t flags = 0;
  std::uint64_t exec_id = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t group_count = 0;
  /// The block: cwd, then argv, then env, each string with its NUL. It follows this struct, or lies
  /// in its descriptor.
  std::uint32_t argument_count = 0;
  std::uint32_t variable_count = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t group_join_count = 0; ///< With has_group only.
  std::uint32_t groups[groups_max] = {};
};

/// What a child sends on the socket of births before anything else, while it is the sandbox's root.
/// The kernel puts its pid and uid beside it as dsec-init sees them, which keeps them when the
/// child is long gone.
struct birth {
  std::uint64_t exec_id = 0;
};

struct signal_request {
  verb what = verb::signal;
  std::int32_t number = 0;
  std::uint64_t exec_id = 0;
  std::uint32_t whole_group = 0; ///< 1: to its process group, not to the main process alone.
  std::uint32_t unused = 0;
};

/// Where a child was when it failed.
enum class stage : std::uint32_t {
  none,
  read_block,
  join_group,
  standard_streams,
  directory,
  identity,
  execute,
};

struct event {
  verb what = verb::ready;
  std::int32_t value = 0; ///< not_started: an errno value.
  std::uint64_t exec_id = 0;
  stage where = stage::none; ///< not_started only.
  std::int32_t pid =
    0; ///< not_started, exited, signalled: of the main process, inside the sandbox.
  /// Added by dsec-init's end to exited and signalled: the main process and the sandbox's root as
  /// the machine sees them; -1 if the child could not tell.
  std::int32_t pid_outside = -1;
  std::uint32_t root_outside = 0;
};

} // namespace dsec::init::reaper
