#pragma once

#include "state/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dsec::spawner {

/// A create whose every field has been checked.
struct create_order {
  std::string id;
  std::vector<std::string> layers; ///< Base first.
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;
  std::uint32_t cpu_milli = 0;
  std::uint64_t disk_bytes = 0;
  bool allow_setuid = false;
  std::string hostname;
  std::uint64_t pause_after_ms = 0;
  std::uint64_t stop_after_ms = 0;
  std::uint64_t time_to_live_ms = 0; ///< Totals; 0: that clock does not run.
  std::uint64_t rollout_budget_ms = 0;
  std::uint64_t age_ms = 0; ///< How long ago it was created.
  std::string datagram;     ///< The request itself: the sandbox's own process reads it again.

  /// Whether a sandbox furnished for `other` is as good for this.
  bool alike(const create_order& other) const {
    return layers == other.layers && memory_bytes == other.memory_bytes
           && processes == other.processes && cpu_milli == other.cpu_milli
           && disk_bytes == other.disk_bytes && allow_setuid == other.allow_setuid;
  }
};

struct destroy_order {
  std::string id;
  std::uint64_t epoch = 0; ///< Of the node that asks; 0: none does.
};

struct list_order {};

struct hello_order {};

struct warm_order {
  std::uint32_t sandboxes = 0;
};

struct shutdown_order {};

using any_order =
  std::variant<create_order, destroy_order, list_order, hello_order, warm_order, shutdown_order>;

struct request {
  std::uint64_t sequence = 0;
  /// What is asked, or why it cannot be.
  result<any_order> what = error{};
};

/// Largest datagram that is read as a request.
inline constexpr std::size_t request_bytes_max = 64 << 10;

/// Reads one datagram. corrupt if it is no Request at all: whoever sent it cannot be answered.
result<request> read_request(std::string_view datagram);

struct live_entry {
  std::string id;
  std::int32_t pid = 0;
  bool ending = false;
};

struct hello_facts {
  std::string version;
  std::int32_t pid = 0;
  std::uint32_t slots = 0;
  std::uint32_t slots_used = 0;
  std::uint32_t sandboxes = 0;
  std::uint64_t swap_bytes = 0;
  std::string cgroup;
  std::string cgroup_root;
};

std::string write_done(std::uint64_t sequence);
std::string write_error(std::uint64_t sequence, const error& e);
std::string write_list(std::uint64_t sequence, const std::vector<live_entry>& entries);
std::string write_hello(std::uint64_t sequence, const hello_facts& facts);

} // namespace dsec::spawner
