#pragma once

#include "placement/cluster_view.hpp"
#include "state/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

namespace dsec {

struct placement_request {
  std::uint64_t sandboxes = 1;
  std::uint64_t memory_bytes = 0; ///< Of each.
};

/// What was placed on a node and does not show in its view yet.
struct in_flight {
  std::uint64_t sandboxes = 0;
  std::uint64_t memory_bytes = 0;
};

using placement_overlay = std::unordered_map<node_id, in_flight>;

struct placement_options {
  /// Nodes drawn at random for one request. The least loaded of them wins: with two or more, stale
  /// views do not send a burst to the one node that looked best.
  std::size_t choices = 4;
  /// A node that was silent for longer is not asked.
  std::chrono::milliseconds age_max{10'000};
};

/// A few nodes that have room for the whole request, least loaded first. Load is the larger of the
/// shares of sandboxes and memory in use, overlay included. exhausted if no node has room, with the
/// one that comes closest; unavailable if no node was heard of lately.
result<std::vector<node_id>> place(const cluster_view& view, const placement_overlay& overlay,
                                   const placement_request& request,
                                   const placement_options& options, std::mt19937_64& chance);

} // namespace dsec
