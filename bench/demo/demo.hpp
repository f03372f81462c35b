#pragma once

#include "bench/demo/census.hpp"
#include "bench/demo/training.hpp"

#include <cstdint>
#include <string>

namespace dsec::demo {

/// A trainer in a process of its own, so that it can be killed like one.
std::vector<std::string> train_command(const train_options& options);

/// Ends a job that an earlier, interrupted demo may have left, in a process of its own; afterwards
/// the spawner runs. Returns how many sandboxes are live then, or -1.
int close_job(const train_options& options);

/// Removes the notes of earlier jobs of this state directory.
void forget_notes(const train_options& options);

/// A job name that no earlier demo used: a job remembers its idempotency keys even when closed.
std::string unused_job(const std::string& name);

installation installed(const train_options& options);

/// The main job: a trainer that is preempted in the middle, then killed, then started again;
/// verified, with a census before and after. 0 if everything holds.
int run_demo(train_options options, bool json);

struct kill_options {
  bool every_point = false; ///< Else random.
  unsigned rounds = 20;     ///< Random only.
  unsigned stride = 1;      ///< Every point: takes every n-th.
  bool json = false;
};

/// Rounds in which `dsec serve` is the node and the dsec command its client; the server alone is
/// killed.
int run_serve_rounds(const train_options& options, const kill_options& kills);

/// Rounds of a small job, each with one process killed. 0 if nothing was lost, duplicated or
/// leaked.
int run_kill_rounds(const train_options& options, const kill_options& kills);

} // namespace dsec::demo
