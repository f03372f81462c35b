// How long until every sandbox of a preempted job is frozen and its memory is back, beside the
// kernel's own rate of paging out; and how long until a reclaimed one answers.

#include "bench/benches.hpp"
#include "bench/pause/bare_holders.hpp"
#include "bench/pause/event_counts.hpp"
#include "bench/testbed.hpp"

namespace dsec::bench {

namespace {

constexpr unsigned megabytes = 64;
const std::string holder_socket = "/tmp/dsec-bench-hold.sock";
const std::string holder = "/usr/bin/dsec-bench-hold";

/// A sandbox whose memory is dirty, and its payload's group as seen from outside.
struct holding_sandbox {
  sandbox box;
  memory_group group;
};

std::vector<holding_sandbox> make_holders(testbed& bed, unsigned count) {
  std::vector<holding_sandbox> holders;
  for (const auto& created :
       bed.job().create_batch(std::vector<create_options>(count, {bed.environment(), {}}))) {
    const auto box = await(created, "create");
    holders.push_back({box, memory_group::of_sandbox(bed.run_dir(), box.id().str())});
  }
  std::uint64_t seed = 0;
  for (const auto& held : holders) {
    exec_spec hold;
    hold.argv = {holder, "hold", holder_socket, std::to_string(megabytes), std::to_string(++seed)};
    held.box.start(std::move(hold));
  }
  return holders;
}

/// Every sandbox's contents are as they were left; they are dirty again then.
void verify(const std::vector<holding_sandbox>& holders) {
  for (const auto& held : holders) {
    go_on();
    run_in(held.box, {holder, "verify", holder_socket});
  }
}

std::uint64_t resident_bytes(const std::vector<holding_sandbox>& holders) {
  std::uint64_t total = 0;
  for (const auto& held : holders)
    total += held.group.resident_bytes();
  return total;
}

double megabytes_per_second(std::uint64_t bytes, double ms) {
  return static_cast<double>(bytes) / (1 << 20) / ms * 1000;
}

} // namespace

report run_pause(const bench_options& options) {
  report found{"pause"};
  testbed bed{options};
  const unsigned count = options.quick ? 16 : 64;
  const int rounds = options.quick ? 1 : 3;
  found.metric("sandboxes", count);
  found.metric("dirty_mb", count * megabytes);
  found.note("contents", "pseudo-random words; sums checked after every resume");

  progress(fmt::format("pause: {} sandboxes of {} MB", count, megabytes));
  event_counts counts;
  const auto following = bed.job().follow(1, [&](const job_event& x) { counts.count(x); });
  const auto holders = make_holders(bed, count);
  verify(holders);
  const bare_holders bare{count, megabytes, bed.place().root()};

  series freeze_ms, bare_freeze_ms, share, resume_ms;
  paired_series rates;
  for (int round = 0; round < rounds; ++round) {
    go_on();
    progress(fmt::format("pause: round {} of {}", round + 1, rounds));
    const auto before = resident_bytes(holders);
    counts.reset();
    const stopwatch clock;
    const auto report = await(bed.job().preempt(), "preempt");
    const double all_ms = clock.ms();
    const double frozen_ms = counts.ms_until(event_kind::paused, count);
    const auto after = resident_bytes(holders);
    if (report.reclaimed != count)
      throw std::runtime_error{fmt::format("preempt: {} of {} reclaimed, {} failed",
                                           report.reclaimed, count, report.failed)};
    freeze_ms.add(frozen_ms);
    share.add(static_cast<double>(before - std::min(before, after)) / static_cast<double>(before));

    const auto limit = bare.page_out();
    bare_freeze_ms.add(limit.freeze_ms);
    rates.add(megabytes_per_second(before - std::min(before, after), all_ms - frozen_ms),
              megabytes_per_second(limit.before_bytes - limit.after_bytes, limit.page_out_ms));

    for (const auto& held : holders) {
      go_on();
      const stopwatch resuming;
      run_in(held.box, {"/bin/true"});
      resume_ms.add(resuming.ms());
    }
    progress("pause: checking the contents");
    verify(holders);
    bare.thaw_and_verify();
  }
  found.metric("freeze_all_ms", freeze_ms.median());
  found.metric("limit_freeze_all_ms", bare_freeze_ms.median());
  found.metric("reclaimed_share", share.median());
  found.metric("reclaim_mb_s", rates.first().median());
  found.metric("limit_mb_s", rates.second().median());
  found.metric("ratio_to_limit", rates.ratio());
  found.metric("resume_exec_p50_ms", resume_ms.median());
  found.metric("resume_exec_p99_ms", resume_ms.percentile(99));
  return found;
}

} // namespace dsec::bench
