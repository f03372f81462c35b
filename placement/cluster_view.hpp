#pragma once

#include "state/ids.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace dsec {

/// One node as it last said of itself.
struct node_view {
  node_id id;
  std::uint64_t live = 0;                   ///< Sandboxes that hold resources.
  std::uint64_t capacity = 0;               ///< How many it admits.
  std::uint64_t memory_committed_bytes = 0; ///< Sum of the memory limits of what is live.
  std::uint64_t memory_capacity_bytes = 0;  ///< 0: no bound.
  std::chrono::milliseconds age{0};         ///< Since it said so.
};

/// Every node that the cluster knows. Old by nature: a node has the last word on admission.
struct cluster_view {
  std::vector<node_view> nodes;
};

} // namespace dsec
