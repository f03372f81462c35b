#include "sdk/cli/replay_command.hpp"

#include "actors/replay.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <string>

namespace dsec {

namespace {

struct replay_arguments {
  std::string scenario;
  replay_options options;
  bool json = false;
};

void print_json(const replay_arguments& args, const replay_report& x) {
  nlohmann::ordered_json out{
    {"scenario", args.scenario},
    {"seed", args.options.seed},
    {"flip", args.options.flip},
    {"hash", fmt::format("{:016x}", x.hash)},
    {"messages", x.messages},
    {"virtual_s", x.virtual_s},
    {"wall_s", x.wall_s},
    {"sandboxes", x.sandboxes},
    {"finished", x.finished},
    {"failed", x.failed},
    {"steps", x.steps},
    {"resent_steps", x.resent_steps},
    {"preempted_requests", x.preempted_requests},
    {"duplicated_execs", x.duplicated_execs},
    {"left_behind", x.left_behind},
    {"complete", x.complete},
  };
  fmt::print("{}\n", out.dump());
}

void print_text(const replay_arguments& args, const replay_report& x) {
  fmt::print("seed {}  hash {:016x}{}\n", args.options.seed, x.hash,
             args.options.flip ? fmt::format("  flipped at {}", args.options.flip) : "");
  fmt::print("{} messages, {:.1f} virtual s in {:.2f} s\n", x.messages, x.virtual_s, x.wall_s);
  fmt::print("{} of {} sandboxes finished, {} failed, {} still held\n", x.finished, x.sandboxes,
             x.failed, x.left_behind);
  fmt::print("{} steps, {} sent again, {} execs run twice, {} requests preempted\n", x.steps,
             x.resent_steps, x.duplicated_execs, x.preempted_requests);
  if (!x.complete)
    fmt::print("the scenario's limit was reached before its jobs ended\n");
}

int run(const replay_arguments& args) {
  auto plan = load_scenario(args.scenario);
  if (!plan) {
    fmt::print(stderr, "dsec: {}\n", plan.error().message);
    return 125;
  }
  spdlog::set_level(spdlog::level::off);
  auto report = replay(*plan, args.options);
  if (args.json)
    print_json(args, report);
  else
    print_text(args, report);
  return report.complete ? 0 : 1;
}

} // namespace

void add_replay_command(CLI::App& parent, int& exit_code) {
  auto args = std::make_shared<replay_arguments>();
  auto* command = parent.add_subcommand("replay", "Run a scenario in virtual time");
  command->add_option("scenario", args->scenario, "A file of bench/scenarios")->required();
  command->add_option("--seed", args->options.seed, "Same seed, same run");
  command->add_option("--flip", args->options.flip,
                      "At the N-th choice between ready actors take another one");
  command->add_flag("--json", args->json, "One JSON object");
  command->callback([args, &exit_code] { exit_code = run(*args); });
}

} // namespace dsec
