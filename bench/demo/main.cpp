#include "bench/demo/demo.hpp"
#include "bench/demo/prepare.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

using namespace dsec;
using namespace dsec::demo;

namespace {

int complain(const error& e) {
  fmt::print(stderr, "dsec-demo: {}: {}\n", to_string(e.code), e.message);
  return 1;
}

int prepare_layers(const train_options& options) {
  auto tasks = load_tasks(options.tasks);
  if (!tasks)
    return complain(tasks.error());
  auto done = prepare(options.data_dir, *tasks);
  return done ? 0 : complain(done.error());
}

/// Ends the job and exits with the number of sandboxes that are live after it; 255: it could not be
/// told.
int close_and_count(const train_options& options) {
  std::error_code ignored;
  std::filesystem::create_directories(options.state_dir.parent_path(), ignored);
  runtime_options where;
  where.data_dir = options.data_dir;
  where.run_dir = options.run_dir;
  auto engine = runtime::open(options.state_dir, where);
  if (!engine)
    return complain(engine.error()), 255;
  auto job = (*engine)->open_job(options.job).get();
  auto closed = job ? job->close().get() : result<void>{job.error()};
  auto live = (*engine)->list().get();
  if (!closed || !live)
    return complain(closed ? live.error() : closed.error()), 255;
  for (const auto& x : *live)
    if (auto found = (*engine)->find(x.id).get())
      static_cast<void>(found->stop().get());
  return static_cast<int>(std::min<std::size_t>(live->size(), 254));
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"dsec-demo: an RL-style trainer on dsec, and what tries to break it"};
  app.require_subcommand(1);
  train_options options;
  options.data_dir = "/var/lib/dsec-demo";
  options.run_dir = "/run/dsec-demo";
  options.tasks = DSEC_DEMO_TASKS;
  bool no_preempt = false;
  kill_options kills;
  std::string kill_at;
  bool json = false;

  auto common = [&](CLI::App* sub) {
    sub->add_option("--state-dir", options.state_dir, "the trainer's state; default DATA/trainer");
    sub->add_option("--data-dir", options.data_dir, "layers, scratch, swap")->capture_default_str();
    sub->add_option("--run-dir", options.run_dir, "sockets and mounts")->capture_default_str();
    sub->add_option("--tasks", options.tasks, "folder with the tasks")->capture_default_str();
    sub->add_option("--job", options.job, "name of the job")->capture_default_str();
  };
  auto training = [&](CLI::App* sub) {
    common(sub);
    sub->add_option("--sandboxes", options.sandboxes)
      ->capture_default_str()
      ->check(CLI::Range(1, 4000));
    sub->add_option("--seed", options.seed)->capture_default_str()->check(CLI::NonNegativeNumber);
    sub->add_option("--speed", options.speed, "divides think times")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
    sub->add_option("--steps-max", options.steps_max, "cuts trajectories; 0: whole")
      ->check(CLI::NonNegativeNumber);
    sub->add_flag("--no-preempt", no_preempt);
    sub->add_flag("--quiet", options.quiet);
  };

  auto* prepare_command = app.add_subcommand("prepare", "make the layers of all tasks");
  common(prepare_command);
  auto* train_one = app.add_subcommand("train", "run the job, or go on with it");
  training(train_one);
  auto* close = app.add_subcommand("close", "end the job; exits with the number of live sandboxes");
  common(close);
  auto* whole = app.add_subcommand("demo", "train, preempt, kill -9, restart, verify");
  training(whole);
  whole->add_option("--kill-at", kill_at, "random | every-point: rounds of kills instead")
    ->check(CLI::IsMember({"random", "every-point"}));
  whole->add_option("--rounds", kills.rounds, "of random kills")
    ->capture_default_str()
    ->check(CLI::NonNegativeNumber);
  whole->add_option("--stride", kills.stride, "takes every n-th point")->check(CLI::Range(1, 1000));
  bool serve = false;
  whole->add_flag("--serve", serve, "rounds of killing `dsec serve` instead");
  whole->add_flag("--json", json, "the last line of output is one JSON object");
  CLI11_PARSE(app, argc, argv);

  options.preempt = !no_preempt;
  if (options.state_dir.empty())
    options.state_dir = options.data_dir / "trainer";
  if (prepare_command->parsed())
    return prepare_layers(options);
  if (train_one->parsed())
    return train(options);
  if (close->parsed())
    return close_and_count(options);
  kills.json = json;
  if (serve)
    return run_serve_rounds(options, kills);
  if (kill_at.empty())
    return run_demo(options, json);
  if (whole->count("--sandboxes") == 0)
    options.sandboxes = 6;
  kills.every_point = kill_at == "every-point";
  return run_kill_rounds(options, kills);
}
