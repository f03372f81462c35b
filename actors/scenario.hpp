#pragma once

#include "state/error.hpp"
#include "state/records.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dsec {

/// Takes a job off its resources for a while.
struct scenario_preemption {
  std::chrono::milliseconds at{0}; ///< After the job was opened.
  std::chrono::milliseconds lasts{0};
  preempt_mode mode = preempt_mode::until_request;
};

struct scenario_job {
  job_id name;
  std::chrono::milliseconds at{0};
  std::uint64_t sandboxes = 0;
  std::uint64_t steps = 0; ///< Of each sandbox's agent.
  std::chrono::milliseconds think_least{0};
  std::chrono::milliseconds think_most{0};
  std::chrono::milliseconds act_least{0};
  std::chrono::milliseconds act_most{0};
  std::vector<scenario_preemption> preemptions;
};

/// A node process that is killed and started again; its machine goes on.
struct scenario_death {
  std::size_t node = 0;
  std::chrono::milliseconds at{0};
  std::chrono::milliseconds back_after{0};
};

/// A file of bench/scenarios: jobs arriving, agents thinking and acting, preemptions, node deaths.
struct scenario {
  std::string name;
  std::size_t nodes = 1;
  std::uint64_t capacity = 4096; ///< Of each node.
  lease_terms lease;
  std::chrono::milliseconds limit{0}; ///< Virtual time after which it is given up.
  std::vector<scenario_job> jobs;
  std::vector<scenario_death> deaths;
};

/// invalid_argument with the field that is wrong, not_found if there is no such file.
result<scenario> load_scenario(const std::filesystem::path& path);

} // namespace dsec
