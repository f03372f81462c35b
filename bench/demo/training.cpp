#include "bench/demo/training.hpp"

#include "bench/demo/prepare.hpp"
#include "bench/demo/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <unistd.h>

namespace dsec::demo {

namespace {

using namespace std::chrono_literals;

/// How long the preempted job is left alone, so that a person sees it.
constexpr auto preempted_for = 1s;

int complain(const error& e) {
  fmt::print(stderr, "dsec-demo: {}: {}\n", to_string(e.code), e.message);
  return 1;
}

runtime_options runtime_options_of(const train_options& options) {
  runtime_options x;
  x.data_dir = options.data_dir;
  x.run_dir = options.run_dir;
  return x;
}

bool graded(const trajectory& x) {
  return x.expect == "solved" || x.expect == "failed";
}

void say(const training& t, const std::string& text) {
  if (!t.options.quiet)
    fmt::print(stderr, "\n{}\n", text);
}

/// Ends the job and tells what became of it. Everything that counts stands in the ledger by now.
int conclude(training& t) {
  t.notes.append({{"event", "closing"},
                  {"create_ms", t.create_ms},
                  {"exec_ms", t.exec_ms},
                  {"replayed", t.replayed},
                  {"steps", t.acked}});
  auto closed = t.job.close().get();
  if (!closed)
    return complain(closed.error());
  t.notes.append({{"event", "finished"}});
  auto events = read_ledger(ledger_file(t.options));
  std::ofstream{results_file(t.options)} << results(events).dump(2) << "\n";
  if (!t.options.quiet)
    print_table(events);
  return 0;
}

} // namespace

std::filesystem::path ledger_file(const train_options& options) {
  return options.state_dir.string() + "." + options.job + ".ledger.jsonl";
}

std::filesystem::path results_file(const train_options& options) {
  return options.state_dir.string() + "." + options.job + ".results.json";
}

std::vector<rollout_plan>
plan_rollouts(const train_options& options, const task_set& tasks,
              const std::map<std::string, dsec::environment>& environments) {
  std::mt19937_64 random{options.seed};
  std::uniform_real_distribution<double> jitter{0.7, 1.3};
  std::vector<rollout_plan> plans;
  for (unsigned i = 0; i < options.sandboxes; ++i) {
    const auto& task = tasks.tasks[(i + options.seed) % tasks.tasks.size()];
    auto variant = i / tasks.tasks.size() % task.trajectories.size();
    rollout_plan plan{fmt::format("rollout-{}", i), fmt::format("grader-{}", i), &task,
                      task.trajectories[variant], environments.at(task.name)};
    auto& actions = plan.trajectory.actions;
    if (options.steps_max > 0 && actions.size() > options.steps_max) {
      actions.resize(options.steps_max);
      plan.trajectory.expect = "failed";
    }
    for (auto& action : actions)
      action.think = std::chrono::milliseconds{
        static_cast<std::int64_t>(static_cast<double>(action.think.count()) * jitter(random))};
    plans.push_back(std::move(plan));
  }
  return plans;
}

detached_routine preempt_once(training& t) {
  t.preempted = true;
  t.may_step.close();
  auto report = co_await t.loop.answer(t.job.preempt(preempt_mode::until_request));
  if (report) {
    t.notes.append({{"event", "preempted"},
                    {"sandboxes", report->sandboxes},
                    {"reclaimed", report->reclaimed},
                    {"failed", report->failed},
                    {"before_bytes", report->before_bytes},
                    {"after_bytes", report->after_bytes}});
    say(t, fmt::format("preempted: {} of {} sandboxes reclaimed, {:.0f} MiB -> {:.0f} MiB",
                       report->reclaimed, report->sandboxes,
                       static_cast<double>(report->before_bytes) / (1 << 20),
                       static_cast<double>(report->after_bytes) / (1 << 20)));
  } else {
    say(t, "preemption failed: " + report.error().message);
  }
  co_await t.loop.sleep(preempted_for);
  t.may_step.open();
  // Their commands are frozen with them, and nobody else will ask: the rollout waits for the
  // answer.
  for (const auto& [name, box] : t.in_flight)
    box.resume();
}

int train(train_options options) {
  auto tasks = load_tasks(options.tasks);
  if (!tasks)
    return complain(tasks.error());
  auto environments = prepared_environments(options.data_dir, *tasks);
  if (!environments)
    return complain(environments.error());
  std::error_code ignored;
  std::filesystem::create_directories(options.state_dir.parent_path(), ignored);
  auto notes = ledger::open(ledger_file(options));
  if (!notes)
    return complain(notes.error());
  auto events = read_ledger(ledger_file(options));
  auto plans = plan_rollouts(options, *tasks, *environments);

  auto engine = runtime::open(options.state_dir, runtime_options_of(options));
  if (!engine)
    return complain(engine.error());
  training t{std::move(options), std::move(*notes)};
  t.before = add_up(events);
  t.preempted = t.before.preempted;
  auto job = (*engine)->open_job(t.options.job).get();
  if (!job)
    return complain(job.error());
  t.job = *job;
  t.notes.append({{"event", "started"}, {"pid", ::getpid()}, {"sandboxes", plans.size()}});
  auto closing = std::find_if(events.begin(), events.end(),
                              [](const auto& e) { return e.value("event", "") == "closing"; });
  if (closing != events.end())
    return conclude(t);

  std::vector<create_options> wanted;
  for (const auto& plan : plans) {
    wanted.push_back({plan.environment, plan.name});
    t.steps_total += plan.trajectory.actions.size() + (graded(plan.trajectory) ? 1 : 0);
  }
  auto created = t.job.create_batch(std::move(wanted));
  for (std::size_t i = 0; i < plans.size(); ++i)
    t.loop.post([&t, &plan = plans[i], future = created[i]] { roll_out(t, plan, future); });
  t.loop.run();
  if (!t.options.quiet)
    t.bar.finish();
  return conclude(t);
}

} // namespace dsec::demo
