#pragma once

#include "state/store.hpp"

#include <string>
#include <vector>

namespace dsec {

/// What must hold over events of one job that follow on one another, and, if nothing is missing
/// before them, over the whole story that they tell: one sentence for each thing that does not.
std::vector<std::string> violations(const std::vector<job_event>& events);

/// Whether all events of a job, none of them dropped, say what its records say.
std::vector<std::string>
disagreements(const loaded_state& state, const job_id& job, const std::vector<job_event>& events);

} // namespace dsec
