#pragma once

#include "bench/report.hpp"
#include "bench/testbed.hpp"

#include <filesystem>
#include <string>

namespace dsec::bench {

/// Many sandboxes, each created, asked to run /bin/true, and stopped.
struct burst_report {
  series answered_ms; ///< Of each, from its create until the command has answered.
  unsigned done = 0;  ///< Created, answered and stopped.
  unsigned failed = 0;
  double wall_ms = 0; ///< Until the last one was stopped.
  std::string first_failure;

  double per_second() const {
    return done / wall_ms * 1000;
  }
};

/// `total` of them, with always `width` under way.
burst_report create_through(testbed& bed, unsigned width, unsigned total);

/// One batch of `count`.
burst_report create_at_once(testbed& bed, unsigned count);

/// Bare containers made and removed a second, by one limit process for each core: what the kernel
/// alone takes. Each has a folder of its own in `scratch`, a btrfs.
double bare_per_second(const testbed& bed, const std::filesystem::path& scratch, unsigned total);

} // namespace dsec::bench
