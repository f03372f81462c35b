#include "bench/demo/child.hpp"
#include "bench/demo/demo.hpp"
#include "bench/demo/ledger_watch.hpp"
#include "bench/demo/report.hpp"
#include "bench/waits.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <random>
#include <signal.h>

namespace dsec::demo {

namespace {

using namespace std::chrono_literals;

constexpr auto round_patience = 5min;
constexpr std::array roles{"node", "spawner", "init"};

struct totals {
  unsigned rounds = 0;
  std::map<std::string, unsigned> kills;
  std::vector<std::string> lost;
  std::vector<std::string> duplicated;
  std::vector<std::string> leaked;
  std::vector<std::string>
    broken; ///< Rounds that did not finish, or finished otherwise than they may.
};

void note(std::vector<std::string>& to, std::string finding) {
  fmt::print(stderr, "  {}\n", finding);
  to.push_back(std::move(finding));
}

void add(std::vector<std::string>& to, const std::string& round, const nlohmann::json& what) {
  for (const auto& x : what)
    note(to, round + ": " + x.get<std::string>());
}

/// Ends the round: nothing may be lost, doubled or left, and every rollout has its result. Only a
/// killed dsec-init or spawner may cost rollouts, at most `may_fail` of them, and each says so.
void verify(const train_options& options, const census& before, unsigned may_fail, totals& sum) {
  auto r = results(read_ledger(ledger_file(options)));
  add(sum.lost, options.job, r["steps"]["lost"]);
  add(sum.duplicated, options.job, r["steps"]["duplicated"]);
  add(sum.broken, options.job, r["steps"]["changed"]);
  unsigned failed = 0;
  for (const auto& rollout : r["rollouts"]) {
    if (rollout["outcome"] == rollout["expect"])
      continue;
    if (rollout["outcome"] == "infrastructure" && ++failed <= may_fail)
      continue;
    note(sum.broken,
         fmt::format("{}: {} should have been {}, was {}: {}", options.job,
                     rollout["sandbox"].get<std::string>(), rollout["expect"].get<std::string>(),
                     rollout["outcome"].get<std::string>(), rollout["cause"].get<std::string>()));
  }
  if (r["rollouts"].size() != options.sandboxes)
    note(sum.broken, fmt::format("{}: {} of {} rollouts finished", options.job,
                                 r["rollouts"].size(), options.sandboxes));
  auto live = close_job(options);
  auto after = settled_census(installed(options), 30s,
                              [&](const census& x) { return leaked(before, x).empty(); });
  for (const auto& leak : leaked(before, after))
    note(sum.leaked, options.job + ": " + leak);
  if (live != 0)
    note(sum.leaked, fmt::format("{}: records: {} live", options.job, live));
}

/// Rollouts that the death of one process of `role` may cost: the trainer none, a dsec-init its
/// own, the spawner those that it was building.
unsigned may_fail(const std::string& role, const train_options& options) {
  if (role == "node")
    return 0;
  return role == "init" ? 1 : options.sandboxes;
}

/// Kills one process of `role`; false if there is none.
bool kill_one(const std::string& role, child& trainer, const train_options& options,
              std::mt19937_64& random) {
  if (role == "node") {
    trainer.crash();
    return true;
  }
  int pid = spawner_pid(installed(options));
  if (role == "init") {
    auto inits = init_pids(installed(options));
    if (inits.empty())
      return false;
    pid = std::next(inits.begin(), static_cast<std::ptrdiff_t>(random() % inits.size()))->second;
  }
  return pid > 0 && ::kill(pid, SIGKILL) == 0;
}

/// Waits for the trainer's end, starting it again whenever it was killed. False if it did not
/// finish.
bool drive_to_end(child& trainer, const train_options& options,
                  const std::vector<std::pair<std::string, std::string>>& env = {}) {
  auto until = bench::within(round_patience);
  while (auto code = trainer.wait(until)) {
    if (*code == 0)
      return true;
    if (*code != 128 + SIGKILL)
      return false;
    auto next = child::start({train_command(options), env});
    if (!next)
      return false;
    trainer = std::move(*next);
  }
  return false;
}

void random_round(train_options options, unsigned round, const census& before,
                  std::mt19937_64& random, totals& sum) {
  options.job = unused_job(fmt::format("kill-{}", round));
  options.seed = random();
  forget_notes(options);
  auto role = std::string{roles[round % roles.size()]};
  ledger_watch ledger{ledger_file(options)};
  auto trainer = child::start({train_command(options)});
  if (!trainer) {
    note(sum.broken, options.job + ": " + trainer.error().message);
    return;
  }
  // Anywhere from the first creation to the last grade.
  auto at = random() % (options.sandboxes * 7);
  auto until = bench::within(round_patience);
  while (ledger.acked() < at && ledger.wait(*trainer, until))
    ;
  trainer->wait(bench::within(std::chrono::milliseconds{random() % 200}));
  bool killed = !trainer->ended() && kill_one(role, *trainer, options, random);
  sum.kills[role] += killed ? 1 : 0;
  fmt::print(stderr, "{}: {} {} after {} acknowledged steps\n", options.job, role,
             killed ? "killed" : "not there to kill", ledger.acked());
  if (!drive_to_end(*trainer, options))
    note(sum.broken, options.job + ": the trainer did not finish");
  verify(options, before, killed ? may_fail(role, options) : 0, sum);
}

/// Ends the spawner, so that the next one gets our environment; it adopts what stands.
void end_spawner(const train_options& options) {
  int pid = spawner_pid(installed(options));
  if (pid < 0)
    return;
  ::kill(pid, SIGKILL);
  bench::wait_for_end(pid, bench::within(10s));
}

/// Marks of the points reached. They stay to the end: a process that lives on would die again
/// without them.
std::filesystem::path markers_of(const train_options& options) {
  return options.state_dir.string() + ".markers";
}

/// One round with the kill at call `n` of `role`. False if that call was never reached.
bool point_round(train_options options, const std::string& role, unsigned n, const census& before,
                 totals& sum) {
  options.job = unused_job(fmt::format("kill-{}-{}", role, n));
  forget_notes(options);
  auto marker = markers_of(options) / options.job;
  std::vector<std::pair<std::string, std::string>> env = {
    {"DSEC_KILL_AT", fmt::format("{}:{}:{}", role, n, marker.string())}};
  if (role != "node")
    end_spawner(options);
  auto trainer = child::start({train_command(options), env});
  if (!trainer || !drive_to_end(*trainer, options, env))
    note(sum.broken, options.job + ": the trainer did not finish");
  verify(options, before, may_fail(role, options), sum);
  bool reached = std::filesystem::exists(marker);
  sum.kills[role] += reached ? 1 : 0;
  fmt::print(stderr, "{}: {}; so far lost {}, duplicated {}, leaked {}, broken {}\n", options.job,
             reached ? "killed there" : "past the last point", sum.lost.size(),
             sum.duplicated.size(), sum.leaked.size(), sum.broken.size());
  return reached;
}

int tell(const totals& sum, bool json) {
  std::string kills;
  for (const auto& [role, count] : sum.kills)
    kills += fmt::format("{}{} {}", kills.empty() ? "" : ", ", role, count);
  for (const auto* list : {&sum.lost, &sum.duplicated, &sum.leaked, &sum.broken})
    for (const auto& line : *list)
      fmt::print("  {}\n", line);
  fmt::print("rounds {}, kills: {}; lost {}, duplicated {}, leaked {}, broken {}\n", sum.rounds,
             kills, sum.lost.size(), sum.duplicated.size(), sum.leaked.size(), sum.broken.size());
  bool good =
    sum.lost.empty() && sum.duplicated.empty() && sum.leaked.empty() && sum.broken.empty();
  if (json)
    fmt::print("{}\n", nlohmann::json{{"rounds", sum.rounds},
                                      {"kills", sum.kills},
                                      {"lost", sum.lost.size()},
                                      {"duplicated", sum.duplicated.size()},
                                      {"leaked", sum.leaked.size()},
                                      {"broken", sum.broken.size()},
                                      {"ok", good}}
                         .dump());
  return good ? 0 : 1;
}

} // namespace

int run_kill_rounds(const train_options& options, const kill_options& kills) {
  auto small = options;
  small.quiet = true;
  small.job = unused_job("warm-up");
  if (close_job(small) < 0)
    return 1;
  auto before =
    settled_census(installed(small), 60s, [](const census& x) { return x.leaks() == 0; });
  totals sum;
  if (kills.every_point) {
    small.sandboxes = 2;
    small.steps_max = 3;
    small.speed = 1000;
    std::filesystem::remove_all(markers_of(small));
    std::filesystem::create_directories(markers_of(small));
    for (const std::string role : roles)
      for (unsigned n = 1; point_round(small, role, n, before, sum); n += kills.stride)
        ++sum.rounds;
    end_spawner(small);
    std::filesystem::remove_all(markers_of(small));
  } else {
    std::mt19937_64 random{options.seed};
    small.speed = 20;
    for (unsigned round = 1; round <= kills.rounds; ++round, ++sum.rounds)
      random_round(small, round, before, random, sum);
  }
  return tell(sum, kills.json);
}

} // namespace dsec::demo
