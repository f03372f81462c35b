#pragma once

#include <cstdint>

/// What dsec-init and the reaper say to each other: one of these structs per SOCK_SEQPACKET
/// datagram, in native byte order, since both were built as one. Included by the freestanding
/// reaper: no library here.
namespace dsec::init::reaper {

/// The reaper's end of the socket, as the spawner must place it before the exec.
inline constexpr int socket_fd = 3;
inline constexpr std::uint32_t groups_max = 32;
/// Control group files that a child joins before it starts.
inline constexpr std::uint32_t joins_max = 6;
/// Main processes at once. dsec-init refuses more before it asks.
inline constexpr std::uint32_t mains_max = 1024;

enum class verb : std::uint32_t {
  spawn = 1,  ///< spawn_request, with descriptors.
  signal,     ///< signal_request.
  ready,      ///< event: the reaper runs its loop.
  not_cloned, ///< event: `value` is the errno of clone.
  exited,     ///< event: `value` is the exit code.
  signalled,  ///< event: `value` is the signal that ended it.
};

/// Descriptors of a spawn, in this order: block, stdin, stdout, stderr, status, then `joins` files.
inline constexpr std::uint32_t descriptors_fixed = 5;

struct spawn_request {
  verb what = verb::spawn;
  std::uint32_t uid = 0;
  std::uint64_t exec_id = 0;
  std::uint32_t gid = 0;
  std::uint32_t group_count = 0;
  std::uint32_t join_count = 0;
  /// The block descriptor: cwd, then argv, then env, each string with its NUL.
  std::uint32_t argument_count = 0;
  std::uint32_t variable_count = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t groups[groups_max] = {};
};

struct signal_request {
  verb what = verb::signal;
  std::int32_t number = 0;
  std::uint64_t exec_id = 0;
};

struct event {
  verb what = verb::ready;
  std::int32_t value = 0;
  std::uint64_t exec_id = 0;
};

/// Where a child was when it failed.
enum class stage : std::uint32_t {
  read_block = 1,
  join_group,
  standard_streams,
  directory,
  identity,
  execute,
};

/// What a child writes to its status descriptor when it cannot become the command. The descriptor
/// closes by itself when the command starts, so end of file without this is success.
struct spawn_failure {
  stage where = stage::execute;
  std::int32_t number = 0;
};

} // namespace dsec::init::reaper
