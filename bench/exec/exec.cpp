// How long a command takes in a sandbox that is running, beside the same program started bare and
// by crun.

#include "bench/benches.hpp"
#include "bench/peers/oci_peer.hpp"
#include "bench/testbed.hpp"

#include <sys/wait.h>

#include <chrono>
#include <spawn.h>
#include <thread>

namespace dsec::bench {

namespace {

/// Milliseconds of posix_spawn and waitpid.
double spawn_and_wait(std::string program) {
  char* const words[] = {program.data(), nullptr};
  const stopwatch clock;
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, words[0], nullptr, nullptr, words, environ);
  checked(errno == 0 ? 0 : -1, "start " + program);
  int status = 0;
  checked(::waitpid(pid, &status, 0), "wait for " + program);
  const double ms = clock.ms();
  if (status != 0)
    throw std::runtime_error{program + " failed"};
  return ms;
}

double exec(const sandbox& box) {
  const stopwatch clock;
  run_in(box, {"/bin/true"});
  return clock.ms();
}

} // namespace

report run_exec(const bench_options& options) {
  report found{"exec"};
  testbed bed{options};
  const auto& limits = bed.environment().limits;
  const peer_root root{bed.layers(), bed.place().folder("rootfs"),
                       bed.place().mount_scratch("scratch")};
  auto crun = open_peer("crun", root, limits, bed.place(), found);
  const std::string program = root.path() / "bin/true";

  const auto box = await(bed.job().create({bed.environment(), {}}), "create");
  const int warm_up = 100;
  for (int i = 0; i < warm_up; ++i) {
    exec(box);
    spawn_and_wait(program);
  }

  const int rounds = options.quick ? 1000 : 10'000;
  const int peer_every = 10;
  paired_series over_spawn, crun_over;
  for (int i = 0; i < rounds; ++i) {
    go_on();
    if (i % (rounds / 10) == 0)
      progress(fmt::format("exec: {} of {}", i, rounds));
    const double ours = exec(box);
    over_spawn.add(ours, spawn_and_wait(program));
    if (crun && i % peer_every == 0)
      crun_over.add(crun->exec(), ours);
  }
  // As an agent does it: the machine has come to rest before every command.
  constexpr std::chrono::milliseconds rest{20};
  paired_series rested;
  const int rested_rounds = options.quick ? 50 : 300;
  progress("exec: after 20 ms of rest each");
  for (int i = 0; i < rested_rounds; ++i) {
    go_on();
    std::this_thread::sleep_for(rest);
    const double ours = exec(box);
    std::this_thread::sleep_for(rest);
    rested.add(ours, spawn_and_wait(program));
  }
  found.metric("exec_rested_p50_ms", rested.first().median());
  found.metric("spawn_rested_p50_ms", rested.second().median());
  found.metric("ratio_rested_to_spawn", rested.ratio());
  found.metric("exec_p50_ms", over_spawn.first().median());
  found.metric("exec_p99_ms", over_spawn.first().percentile(99));
  found.metric("spawn_p50_ms", over_spawn.second().median());
  found.metric("ratio_to_spawn", over_spawn.ratio());
  if (crun) {
    found.metric("crun_exec_p50_ms", crun_over.first().median());
    found.metric("ratio_crun_exec", crun_over.ratio());
  }
  return found;
}

} // namespace dsec::bench
