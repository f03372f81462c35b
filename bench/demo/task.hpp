#pragma once

#include "state/environment.hpp"
#include "state/error.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// The demo's tasks, as bench/demo/tasks/ describes them: a source tree with a bug, recorded ways
/// in which an agent went about it, and how the result is graded.

namespace dsec::demo {

/// One tool call of a recorded trajectory.
struct action {
  std::chrono::milliseconds think{0}; ///< What the agent thought before it.
  std::string command;                ///< For /bin/sh, in the source tree.
  std::string input;                  ///< Its standard input: a patch, or empty.
  std::chrono::milliseconds deadline{30'000};
};

struct trajectory {
  std::string name;
  /// "solved", "failed" (graded, reward 0), or the name of the outcome_kind that ends the rollout.
  std::string expect;
  std::vector<action> actions;
};

struct task {
  std::string name;
  std::string source; ///< Debian source package.
  std::string summary;
  std::filesystem::path bug; ///< The patch that breaks it.
  /// Files that are copied from the rollout's sandbox into the fresh one that grades; nothing else
  /// is.
  std::vector<std::string> collect;
  std::string grade_command;
  std::uint64_t grade_tests = 0; ///< So many must pass, and none fail, for the reward 1.
  std::chrono::milliseconds grade_deadline{60'000};
  std::vector<trajectory> trajectories;
};

struct task_set {
  std::string suite;
  std::vector<std::string> include;
  std::filesystem::path toolkit;
  dsec::environment defaults; ///< Without layers.
  std::vector<task> tasks;    ///< By name.
};

/// Reads tasks/environment.yaml and tasks/*/task.yaml. invalid_argument names file, field and
/// cause.
result<task_set> load_tasks(const std::filesystem::path& directory);

/// The source tree of a task inside its sandbox.
std::string workspace_of(const task& x);

} // namespace dsec::demo
