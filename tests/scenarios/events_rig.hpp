#pragma once

#include "sdk/embed/runtime.hpp"
#include "state/format.hpp"
#include "tests/scenarios/heard_events.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

namespace dsec::test {

inline job_options no_lease() {
  return {{std::chrono::milliseconds{0}, std::chrono::milliseconds{0}}};
}

/// Everything that is kept of a job, page by page.
inline std::vector<job_event>
kept_events(const job& of, std::uint64_t cursor = 1, std::uint64_t count = 1000) {
  std::vector<job_event> all;
  for (;;) {
    auto page = value(of.events(cursor, count));
    if (page.events.empty())
      return all;
    all.insert(all.end(), page.events.begin(), page.events.end());
    cursor = page.next;
  }
}

/// "exec_ended 3 exited", "stopped self_inflicted".
inline std::string in_short(const job_event& x) {
  auto text = fmt::format("{}", x.kind);
  if (x.step)
    text += fmt::format(" {}", *x.step);
  if (x.outcome)
    text += fmt::format(" {}", x.outcome->kind);
  if (x.cause != end_cause::none)
    text += fmt::format(" {}", x.cause);
  return text;
}

inline std::vector<std::string> in_short(const std::vector<job_event>& events) {
  std::vector<std::string> all;
  for (const auto& x : events)
    all.push_back(in_short(x));
  return all;
}

} // namespace dsec::test
