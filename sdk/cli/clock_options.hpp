#pragma once

#include "sdk/cli/options.hpp"
#include "state/clocks.hpp"

#include <string>

namespace dsec {

/// What `create`, `run` and `clocks` take about the clocks of a sandbox: each option, if it is
/// given, in seconds.
struct clock_options {
  std::string time_to_live;
  std::string rollout_budget;
  std::string idle_timeout;
  std::string on_idle;

  void add_to(CLI::App& command);

  bool given() const;

  /// `on` with what is given put in its place; "+60" is 60 s more than there was.
  result<sandbox_clocks> apply(sandbox_clocks on) const;
};

} // namespace dsec
