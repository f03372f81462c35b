#pragma once

#include "backends/init/launch.hpp"
#include "state/error.hpp"

#include <kj/io.h>

#include <cstdint>
#include <string_view>

namespace dsec::init {

/// What the control groups count about one sandbox, on cgroup v1 and v2 alike; what they count
/// about one command is `exec_account`'s. A file that the
/// kernel does not have counts 0.
class counters {
public:
  /// Opens what every command reads. The rest is opened when it is asked for: most sandboxes never
  /// are, and each open file costs a create its time. The directories of `given` stay open.
  explicit counters(const launch& given);

  std::uint64_t memory_bytes() const; ///< Resident, page cache and swap cache.
  std::uint64_t memory_peak_bytes() const;
  std::uint64_t swap_bytes() const;
  /// The most that was ever charged against the memory limit, with what lay in swap.
  std::uint64_t charged_peak_bytes() const;
  std::uint32_t processes() const;
  std::uint64_t cpu_us() const;

  struct reclaimed {
    std::uint64_t before_bytes = 0;
    std::uint64_t after_bytes = 0;
  };

  /// Gives the memory back. Blocks for as long as the kernel writes to swap: call it in a thread of
  /// its own. exhausted when there is no swap to take it.
  result<reclaimed> reclaim() const;

private:
  /// A file that is opened for each use.
  struct rare_file {
    int folder = -1;
    const char* name = "";
  };

  /// Of files, not yet on the disk: such pages cannot be given back yet. v2 alone.
  std::uint64_t bytes_to_write() const;

  bool unified_;
  std::uint64_t memory_limit_;
  rare_file usage_, peak_, charged_peak_, swap_, give_back_, swap_limit_, cpu_;
  kj::AutoCloseFd processes_;
};

/// The value after `key` in an open file of lines "key value"; 0 if it has none.
std::uint64_t counted_in(int fd, std::string_view key);

} // namespace dsec::init
