#pragma once

#include "bench/demo/census.hpp"
#include "tests/scenarios/exec_rig.hpp"

#include <fstream>

namespace dsec::test {

/// The host's pid of a sandbox's PID 1; -1 if there is none. `init` is that of its dsec-init.
inline int reaper_of(int init) {
  std::ifstream children{fmt::format("/proc/{0}/task/{0}/children", init)};
  for (int child; children >> child;) {
    std::string name;
    std::ifstream{fmt::format("/proc/{}/comm", child)} >> name;
    if (name == "dsec-reaper")
      return child;
  }
  return -1;
}

} // namespace dsec::test
