#pragma once

#include "bench/report.hpp"
#include "bench/testbed.hpp"

namespace dsec::bench {

/// One question each; bench/README.md says which. They throw std::exception when they cannot be
/// answered.
report run_create(const bench_options& options);

report run_exec(const bench_options& options);

report run_pause(const bench_options& options);

report run_journal(const bench_options& options);

report run_soak(const bench_options& options);

report run_peers(const bench_options& options);

} // namespace dsec::bench
