#pragma once

#include "actors/node.hpp"
#include "actors/plane.hpp"

#include <vector>

/// What `start_plane` is made of, for processes and simulations that put the parts together
/// otherwise.

namespace dsec {

/// What a store says at the start of a new life: epoch and boot id already advanced, not yet
/// written.
struct plane_seed {
  node_seed node;
  std::vector<job_record> jobs;
};

/// Reads `durable`. A new one gets its node id.
result<plane_seed> load_seed(store& durable, const plane_options& options);

/// The first thing to be made durable.
write_batch_ptr opening_write(const plane_seed& seed);

} // namespace dsec
