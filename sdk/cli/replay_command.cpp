#include "sdk/cli/replay_command.hpp"

#include "actors/replay.hpp"
#include "sdk/cli/numbers.hpp"
#include "sdk/cli/standard_output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <limits>
#include <memory>
#include <string>

namespace dsec {

namespace {

struct replay_arguments {
  std::string scenario;
  replay_options options;
  bool json = false;
};

result<void> print_as_json(const replay_arguments& args, const replay_report& x) {
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
  return print_json(std::move(out));
}

result<void> print_text(const replay_arguments& args, const replay_report& x) {
  auto text = fmt::format("seed {}  hash {:016x}", args.options.seed, x.hash);
  if (args.options.flip)
    text += fmt::format("  flipped at {}", args.options.flip);
  text +=
    fmt::format("\n{} messages, {:.1f} virtual s in {:.2f} s\n", x.messages, x.virtual_s, x.wall_s);
  text += fmt::format("{} of {} sandboxes finished, {} failed, {} still held\n", x.finished,
                      x.sandboxes, x.failed, x.left_behind);
  text += fmt::format("{} steps, {} sent again, {} execs run twice, {} requests preempted\n",
                      x.steps, x.resent_steps, x.duplicated_execs, x.preempted_requests);
  if (!x.complete)
    text += "the scenario's limit was reached before its jobs ended\n";
  return print(text);
}

int run(const replay_arguments& args) {
  auto plan = load_scenario(args.scenario);
  if (!plan) {
    complain(plan.error().message);
    return 125;
  }
  spdlog::set_level(spdlog::level::off);
  auto report = replay(*plan, args.options);
  if (auto told = args.json ? print_as_json(args, report) : print_text(args, report); !told) {
    complain(told.error().message);
    return 125;
  }
  return report.complete ? 0 : 1;
}

} // namespace

void add_replay_command(CLI::App& parent, int& exit_code) {
  auto args = std::make_shared<replay_arguments>();
  auto* command = parent.add_subcommand("replay", "Run a scenario in virtual time");
  command->add_option("scenario", args->scenario, "A file of bench/scenarios")->required();
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  add_whole(*command, "--seed", args->options.seed, "Same seed, same run", any);
  add_whole(*command, "--flip", args->options.flip,
            "At the N-th choice between ready actors take another one", any);
  command->add_flag("--json", args->json, "One JSON object");
  command->callback([args, &exit_code] { exit_code = run(*args); });
}

} // namespace dsec
