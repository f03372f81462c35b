#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dsec::bench {

/// What a process holds, from /proc; zeros if there is none.
struct process_usage {
  double rss_kb = 0;
  double descriptors = 0;
  double threads = 0;
};

process_usage usage_of(pid_t pid);

/// The mean over several processes of one role.
process_usage mean_usage(const std::vector<pid_t>& pids);

/// Samples of one role over a long run.
class usage_history {
public:
  void add(const process_usage& x);

  /// Median of the last third over the median of the first third, minus one, in percent. 0 with
  /// fewer than 6 samples.
  double rss_growth_pct() const;
  double descriptors_growth_pct() const;
  double threads_growth_pct() const;

  process_usage last() const;

private:
  std::vector<process_usage> samples_;
};

} // namespace dsec::bench
