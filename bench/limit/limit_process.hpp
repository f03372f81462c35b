#pragma once

#include "bench/kernel_calls.hpp"
#include "state/environment.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace dsec::bench {

/// dsec-bench-limit at work: a small process, so that what it clones is not this one.
class limit_process {
public:
  /// `layers`, folders of the store, base first; `scratch` a btrfs with simple quotas.
  limit_process(const std::filesystem::path& scratch, const sandbox_limits& limits,
                const std::vector<std::string>& layers);

  limit_process(const limit_process&) = delete;
  limit_process& operator=(const limit_process&) = delete;

  ~limit_process();

  /// Milliseconds of one bare container: from the first call until its /bin/true has exited.
  double run();

private:
  pid_t pid_ = -1;
  fd ask_;
  fd answers_;
};

} // namespace dsec::bench
