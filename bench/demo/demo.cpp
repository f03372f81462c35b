#include "bench/demo/demo.hpp"

#include "bench/demo/child.hpp"
#include "bench/demo/ledger_watch.hpp"
#include "bench/demo/report.hpp"

#include <fmt/format.h>

#include <chrono>

namespace dsec::demo {

namespace {

using namespace std::chrono_literals;

constexpr auto run_patience = 30min;

/// It has gone on for a while after its preemption.
bool far_enough(const ledger_watch& ledger) {
  return ledger.preempted() && ledger.acked_since_preempted() * 10 >= ledger.acked();
}

/// Starts the trainer and kills it with SIGKILL once it has gone on after its preemption. False if
/// it ended by itself first.
bool first_half(const train_options& options) {
  ledger_watch ledger{ledger_file(options)};
  auto trainer = child::start({train_command(options)});
  if (!trainer) {
    fmt::print(stderr, "dsec-demo: {}\n", trainer.error().message);
    return false;
  }
  auto until = bench::within(run_patience);
  while (!far_enough(ledger)) {
    if (!ledger.wait(*trainer, until)) {
      fmt::print(stderr, "dsec-demo: the trainer ended before it was killed\n");
      return false;
    }
  }
  trainer->crash();
  auto sums = add_up(read_ledger(ledger_file(options)));
  std::uint64_t open = 0;
  for (const auto& [key, count] : sums.sent)
    open += sums.acked.contains(key) ? 0 : 1;
  fmt::print(stderr,
             "\ntrainer (pid {}) killed with SIGKILL: {} steps acknowledged, {} under way\n",
             trainer->pid(), sums.acked.size(), open);
  return true;
}

} // namespace

std::vector<std::string> train_command(const train_options& o) {
  std::vector<std::string> argv = {own_program(),
                                   "train",
                                   "--state-dir=" + o.state_dir.string(),
                                   "--data-dir=" + o.data_dir.string(),
                                   "--run-dir=" + o.run_dir.string(),
                                   "--tasks=" + o.tasks.string(),
                                   "--job=" + o.job,
                                   fmt::format("--sandboxes={}", o.sandboxes),
                                   fmt::format("--seed={}", o.seed),
                                   fmt::format("--speed={}", o.speed),
                                   fmt::format("--steps-max={}", o.steps_max)};
  if (!o.preempt)
    argv.push_back("--no-preempt");
  if (o.quiet)
    argv.push_back("--quiet");
  return argv;
}

int close_job(const train_options& o) {
  auto closer = child::start(
    {{own_program(), "close", "--state-dir=" + o.state_dir.string(),
      "--data-dir=" + o.data_dir.string(), "--run-dir=" + o.run_dir.string(), "--job=" + o.job}});
  if (!closer)
    return -1;
  // Its exit code is the number of live sandboxes, or 255.
  auto code = closer->wait(bench::within(5min));
  return code && *code < 255 ? *code : -1;
}

void forget_notes(const train_options& o) {
  auto prefix = o.state_dir.filename().string() + ".";
  std::error_code ec;
  for (std::filesystem::directory_iterator it{o.state_dir.parent_path(), ec}, end; !ec && it != end;
       it.increment(ec)) {
    auto name = it->path().filename().string();
    if (name.starts_with(prefix) && (name.ends_with(".jsonl") || name.ends_with(".json")))
      std::filesystem::remove(it->path(), ec);
  }
}

std::string unused_job(const std::string& name) {
  return fmt::format("{}-{:x}", name, std::chrono::system_clock::now().time_since_epoch().count());
}

installation installed(const train_options& o) {
  return {o.run_dir, o.data_dir};
}

int run_demo(train_options options, bool json) {
  options.job = unused_job(options.job);
  forget_notes(options);
  if (close_job(options) < 0)
    return 1;
  auto nothing_left = [](const census& x) {
    return x.leaks() == 0;
  };
  auto before = settled_census(installed(options), 60s, nothing_left);
  fmt::print(stderr, "before: {}\n", describe(before));

  if (!first_half(options))
    return 1;
  auto trainer = child::start({train_command(options)});
  if (!trainer)
    return 1;
  auto code = trainer->wait(bench::within(run_patience));
  if (code != 0) {
    fmt::print(stderr, "dsec-demo: the restarted trainer {}\n",
               code ? fmt::format("exited with {}", *code) : "did not finish");
    return 1;
  }

  auto live = close_job(options);
  auto after = settled_census(installed(options), 30s,
                              [&](const census& x) { return leaked(before, x).empty(); });
  auto leaks = leaked(before, after);
  if (live != 0)
    leaks.insert(fmt::format("records: {} live", live));
  auto r = results(read_ledger(ledger_file(options)));
  const auto& steps = r["steps"];
  fmt::print("leaks           {} (before: {}; after: {})\n", leaks.size(), describe(before),
             describe(after));
  for (const auto& leak : leaks)
    fmt::print("  leaked {}\n", leak);
  for (const auto* kind : {"lost", "duplicated", "changed"})
    for (const auto& what : steps[kind])
      fmt::print("  {} {}\n", kind, what.get<std::string>());
  for (const auto& rollout : r["rollouts"])
    if (rollout["expect"] != rollout["outcome"])
      fmt::print("  {} ({}, {}) should have been {}, was {}: {}\n",
                 rollout["sandbox"].get<std::string>(), rollout["task"].get<std::string>(),
                 rollout["trajectory"].get<std::string>(), rollout["expect"].get<std::string>(),
                 rollout["outcome"].get<std::string>(), rollout["cause"].get<std::string>());
  bool good = leaks.empty() && steps["lost"].empty() && steps["duplicated"].empty()
              && steps["changed"].empty() && r["unexpected"] == 0
              && r["rollouts"].size() == options.sandboxes && r["runs"] == 2;
  fmt::print("{}\n", good ? "demo: ok" : "demo: FAILED");
  if (json) {
    r["leaked"] = leaks;
    r["ok"] = good;
    r.erase("acked");
    r.erase("rollouts");
    fmt::print("{}\n", r.dump());
  }
  return good ? 0 : 1;
}

} // namespace dsec::demo
