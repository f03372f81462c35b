#pragma once

#include "bench/demo/event_loop.hpp"
#include "bench/demo/gate.hpp"
#include "bench/demo/ledger.hpp"
#include "bench/demo/progress_bar.hpp"
#include "bench/demo/routine.hpp"
#include "bench/demo/task.hpp"
#include "sdk/embed/runtime.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dsec::demo {

struct train_options {
  std::filesystem::path state_dir; ///< The runtime's; the ledger and the results lie beside it.
  std::filesystem::path data_dir;
  std::filesystem::path run_dir;
  std::filesystem::path tasks; ///< bench/demo/tasks of a checkout.
  std::string job = "demo";    ///< Names the job, its ledger and its results.
  unsigned sandboxes = 64;
  std::uint64_t seed = 1;
  double speed = 1;            ///< Think times are divided by it.
  bool preempt = true;         ///< Once, when half of the steps are acknowledged.
  std::uint64_t steps_max = 0; ///< Cuts each trajectory; 0: whole.
  bool quiet = false;
};

/// The files of one demo below its state directory.
std::filesystem::path ledger_file(const train_options& options);
std::filesystem::path results_file(const train_options& options);

/// One attempt at one task: rollout `index` of the job.
struct rollout_plan {
  std::string name; ///< "rollout-<index>", also its idempotency key.
  std::string grader_name;
  const dsec::demo::task* task = nullptr;
  dsec::demo::trajectory trajectory;
  dsec::environment environment;
};

/// The same plans for the same options, in every process.
std::vector<rollout_plan>
plan_rollouts(const train_options& options, const task_set& tasks,
              const std::map<std::string, dsec::environment>& environments);

/// What all rollouts of one run share. On the loop's thread only.
struct training {
  train_options options;
  event_loop loop;
  gate may_step{loop};
  dsec::job job;
  ledger notes;
  ledger_sums before; ///< Of earlier runs of this job.
  progress_bar bar{"steps"};
  std::uint64_t steps_total = 0;
  std::uint64_t acked = 0;
  std::uint64_t replayed = 0;
  std::uint64_t finished = 0;
  bool preempted = false;
  std::map<std::string, sandbox> in_flight; ///< Sandboxes with a command under way.
  std::vector<double> create_ms;            ///< Batch asked -> sandbox runs.
  std::vector<double> exec_ms; ///< Round trip less the command's own time; replays excluded.

  training(train_options o, ledger l) : options{std::move(o)}, notes{std::move(l)} {}
};

/// Runs one rollout from its first step to its reward, noting everything in the ledger. dsec
/// answers the steps of an earlier run from its trajectory log.
detached_routine roll_out(training& t, const rollout_plan& plan, future<sandbox> created);

/// Preempts the job, notes what that gave back, and lets the rollouts' next requests bring it back.
detached_routine preempt_once(training& t);

/// The whole run: 0 if every rollout has got its result.
int train(train_options options);

} // namespace dsec::demo
