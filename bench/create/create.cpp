// How long from `create` until the first command in the sandbox has answered, beside the bare
// system calls and two container runtimes; and how many a second, together.

#include "bench/benches.hpp"
#include "bench/create/burst.hpp"
#include "bench/limit/limit_process.hpp"
#include "bench/peers/oci_peer.hpp"
#include "bench/testbed.hpp"

namespace dsec::bench {

namespace {

void report_burst(report& found, const std::string& suffix, const burst_report& burst) {
  found.metric("creates_per_s_" + suffix, burst.per_second());
  found.metric("create_exec_p50_ms_" + suffix, burst.answered_ms.median());
  found.metric("create_exec_p99_ms_" + suffix, burst.answered_ms.percentile(99));
  found.metric("straggler_" + suffix, burst.answered_ms.max() / burst.answered_ms.median());
  if (burst.failed > 0)
    found.note("failed_" + suffix, burst.first_failure);
}

} // namespace

report run_create(const bench_options& options) {
  report found{"create"};
  testbed bed{options};
  const auto& limits = bed.environment().limits;
  const auto scratch = bed.place().mount_scratch("scratch");
  const peer_root root{bed.layers(), bed.place().folder("rootfs"), scratch};
  limit_process limit{scratch, limits, bed.layers()};
  auto crun = open_peer("crun", root, limits, bed.place(), found);
  auto runc = open_peer("runc", root, limits, bed.place(), found);

  const int warm_up = 20;
  for (int i = 0; i < warm_up; ++i) {
    create_and_exec(bed);
    limit.run();
  }

  const int rounds = options.quick ? 200 : 1000;
  const int peer_every = 4;
  paired_series over_limit, crun_over, runc_over;
  for (int i = 0; i < rounds; ++i) {
    go_on();
    if (i % (rounds / 10) == 0)
      progress(fmt::format("create: one at a time, {} of {}", i, rounds));
    const double ours = create_and_exec(bed);
    over_limit.add(ours, limit.run());
    if (i % peer_every != 0)
      continue;
    if (crun)
      crun_over.add(crun->run(), ours);
    if (runc)
      runc_over.add(runc->run(), ours);
  }
  found.metric("create_exec_p50_ms", over_limit.first().median());
  found.metric("create_exec_p99_ms", over_limit.first().percentile(99));
  found.metric("limit_p50_ms", over_limit.second().median());
  found.metric("limit_p99_ms", over_limit.second().percentile(99));
  found.metric("ratio_to_limit", over_limit.ratio());
  if (crun) {
    found.metric("crun_p50_ms", crun_over.first().median());
    found.metric("ratio_crun", crun_over.ratio());
  }
  if (runc) {
    found.metric("runc_p50_ms", runc_over.first().median());
    found.metric("ratio_runc", runc_over.ratio());
  }

  // Long enough that what the spawner has prepared is used up several times over.
  const unsigned total = options.quick ? 10 * testbed::warm : 60 * testbed::warm;
  progress(fmt::format("create: {} in all, 16 at once", total));
  const auto few = create_through(bed, 16, total);
  report_burst(found, "16", few);
  progress("create: 500 at once");
  const auto many = create_at_once(bed, 500);
  report_burst(found, "500", many);
  progress("create: the bare system calls, on every core");
  const double bare = bare_per_second(bed, scratch, total);
  found.metric("limit_creates_per_s", bare);
  found.metric("share_of_limit_creates_per_s", few.per_second() / bare);
  found.metric("failed", few.failed + many.failed);
  return found;
}

} // namespace dsec::bench
