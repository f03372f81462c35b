#include "sdk/cli/list.hpp"
#include "sdk/cli/numbers.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/cli/own_output.hpp"
#include "state/format.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <unistd.h>

namespace dsec {

namespace {

std::string outcome_text(const exec_result& x) {
  switch (x.outcome.kind) {
  case outcome_kind::exited:
  case outcome_kind::signalled:
    return fmt::format("{} {}", x.outcome.kind, x.outcome.code);
  default:
    return std::string{to_string(x.outcome.kind)};
  }
}

result<void> print_trajectory(capnp::List<wire::StepInfo>::Reader steps, bool json) {
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{{"STEP", "OUTCOME", "MS", "OUT", "ERR"}};
  for (auto step : steps) {
    auto number = std::to_string(step.getStep());
    if (!step.getEnded()) {
      rows.push_back({number, "running", "", "", ""});
      list.push_back({{"step", step.getStep()}, {"ended", false}});
      continue;
    }
    auto x = wire::read(step.getResult());
    rows.push_back({number, outcome_text(x), std::to_string(x.duration.count()),
                    std::to_string(x.out_bytes), std::to_string(x.err_bytes)});
    list.push_back({{"step", step.getStep()},
                    {"ended", true},
                    {"outcome", std::string{to_string(x.outcome.kind)}},
                    {"code", x.outcome.code},
                    {"cause", x.outcome.cause},
                    {"duration_ms", x.duration.count()},
                    {"out_bytes", x.out_bytes},
                    {"err_bytes", x.err_bytes}});
  }
  return json ? print_json(std::move(list)) : print_table(rows);
}

result<void> print_output(wire::StepInfo::Reader step) {
  auto x = wire::read(step.getResult());
  if (auto told = print(x.out); !told)
    return told;
  if (int number = write_all(STDERR_FILENO, x.err.data(), x.err.size()); number != 0)
    return errno_error(number, "write standard error");
  if (x.out.size() < x.out_bytes || x.err.size() < x.err_bytes)
    complain("standard output was {} bytes and standard error {}, {} and {} were kept", x.out_bytes,
             x.err_bytes, x.out.size(), x.err.size());
  return {};
}

} // namespace

void add_log_command(CLI::App& app, cli_options& options) {
  auto* logs = app.add_subcommand("logs", "The recorded steps of a sandbox, or one step's output");
  auto id = std::make_shared<std::string>();
  auto step = std::make_shared<std::optional<std::uint64_t>>();
  logs->add_option("sandbox", *id, "Its id")->required();
  add_whole(*logs, "step", *step, "Print the output of this step, each stream to its own",
            step_max);
  logs->add_flag("--json", options.json, "As JSON; not with a step, whose output is bytes");
  logs->callback([&options, id, step] {
    if (*step && options.json)
      return options.fail(
        {errc::invalid_argument, fmt::format("--json with step {}: its output is bytes", **step)});
    options.with_client([&](client& at) -> result<void> {
      auto find = at.dsec.sandboxRequest();
      find.setId(id->c_str());
      auto found = wait(at, find.send());
      if (!found)
        return found.error();
      auto request = found->getSandbox().logRequest();
      request.setHasStep(step->has_value());
      request.setWithOutputOf(step->value_or(0));
      auto answer = wait(at, request.send());
      if (!answer)
        return answer.error();
      if (*step)
        return print_output(answer->getSteps()[0]);
      return print_trajectory(answer->getSteps(), options.json);
    });
  });
}

} // namespace dsec
