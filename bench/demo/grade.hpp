#pragma once

#include "bench/demo/task.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace dsec::demo {

struct score {
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;

  friend bool operator==(const score&, const score&) = default;
};

/// The last line "N passed, N failed" of a test run's output.
std::optional<score> parse_score(std::string_view output);

/// 1 if every test that the task names was run and passed, else 0. Missing output is worth nothing,
/// whatever the exit code said.
double reward_of(const task& x, const std::optional<score>& got);

} // namespace dsec::demo
