#pragma once

#include "bench/demo/census.hpp"
#include "bench/waits.hpp"
#include "tests/sdk/playground.hpp"

#include <chrono>
#include <string>

namespace dsec::test {

inline demo::installation installation_of(const playground& at) {
  return {at.run_dir, at.data_dir};
}

/// What is still there of sandboxes on that machine once it had 20 s to go; empty: nothing.
inline std::string residue(const demo::installation& where) {
  demo::census left;
  // Nobody is told when other processes' groups, subvolumes and descriptors go; and a sandbox that
  // is being built ahead looks like a remnant for a moment.
  bool none =
    bench::ask_until(bench::within(std::chrono::seconds{20}), std::chrono::milliseconds{20}, [&] {
      left = demo::take_census(where);
      return left.leaks() == 0;
    });
  return none ? std::string{} : demo::describe(left);
}

} // namespace dsec::test
