#include "sdk/cli/clock_options.hpp"
#include "sdk/cli/list.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/front/convert.hpp"

#include <nlohmann/json.hpp>

namespace dsec {

namespace {

std::string seconds(std::chrono::milliseconds x) {
  return fmt::format("{:.3f} s", static_cast<double>(x.count()) / 1000);
}

/// `left`: nothing is known of what is left, as of one that has not started.
result<void> print_clocks(const sandbox_clocks& x, const sandbox_stats* left, bool json) {
  if (json) {
    auto out = as_json(x);
    if (left) {
      out["time_to_live_left_ms"] = left->time_to_live_left.count();
      out["rollout_budget_left_ms"] = left->rollout_budget_left.count();
    }
    return print_json(std::move(out));
  }
  auto of = [](std::chrono::milliseconds total, const std::chrono::milliseconds* rest) {
    if (total.count() == 0)
      return std::vector<std::string>{"-", ""};
    return std::vector<std::string>{seconds(total), rest ? seconds(*rest) : ""};
  };
  std::vector<std::vector<std::string>> rows{{"CLOCK", "TOTAL", "LEFT"}};
  for (auto [name, row] :
       {std::pair{"time to live", of(x.time_to_live, left ? &left->time_to_live_left : nullptr)},
        {"rollout budget", of(x.rollout_budget, left ? &left->rollout_budget_left : nullptr)},
        {"idle time-out", of(x.idle_timeout, nullptr)}}) {
    row.insert(row.begin(), name);
    rows.push_back(row);
  }
  if (x.idle_timeout.count() != 0)
    rows.back().back() = std::string{to_string(x.on_idle)};
  return print_table(rows);
}

result<void> show(client& at, wire::Sandbox::Client of, const sandbox_clocks& x, bool json) {
  auto answer = wait(at, of.statsRequest().send());
  auto left = answer ? std::optional{wire::read(answer->getStats())} : std::nullopt;
  return print_clocks(x, left ? &*left : nullptr, json);
}

} // namespace

void add_clocks_command(CLI::App& app, cli_options& options) {
  auto* command = app.add_subcommand(
    "clocks", "Show the clocks of a sandbox, or set those that are given; the others stay");
  auto id = std::make_shared<std::string>();
  auto wanted = std::make_shared<clock_options>();
  command->add_option("sandbox", *id, "Its id")->required();
  wanted->add_to(*command);
  command->add_flag("--json", options.json, "As JSON, also after they were set");
  command->footer("Times are totals from where a clock began; +SECONDS extends by so much.");
  command->callback([&options, id, wanted] {
    options.with_client([&](client& at) -> result<void> {
      auto find = at.dsec.sandboxRequest();
      find.setId(id->c_str());
      auto found = wait(at, find.send());
      if (!found)
        return found.error();
      auto target = found->getSandbox();
      auto info = wait(at, target.infoRequest().send());
      if (!info)
        return info.error();
      auto clocks = wire::read(info->getInfo().getClocks());
      if (!wanted->given())
        return show(at, target, clocks, options.json);
      auto next = wanted->apply(clocks);
      if (!next)
        return next.error();
      auto set = target.setClocksRequest();
      wire::write(*next, set.initClocks());
      auto done = wait(at, set.send());
      if (!done)
        return done.error();
      return options.json ? show(at, target, *next, true) : result<void>{};
    });
  });
}

} // namespace dsec
