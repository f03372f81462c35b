#pragma once

#include <nlohmann/json.hpp>

#include <vector>

namespace dsec::demo {

/// Everything that a ledger tells, for machines: rollouts, tasks, timings, memory, steps and the
/// verdict on them.
nlohmann::json results(const std::vector<nlohmann::json>& events);

/// The same for a person, on stdout.
void print_table(const std::vector<nlohmann::json>& events);

} // namespace dsec::demo
