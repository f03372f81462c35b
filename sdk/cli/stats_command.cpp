#include "sdk/cli/list.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/front/convert.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace dsec {

namespace {

std::string bytes(std::uint64_t x) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(x);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < units.size(); ++unit)
    amount /= 1024;
  return unit == 0 ? fmt::format("{} B", x) : fmt::format("{:.1f} {}", amount, units[unit]);
}

result<void> print_as_json(const sandbox_stats& x) {
  nlohmann::json out{{"memory_bytes", x.memory_bytes},
                     {"memory_peak_bytes", x.memory_peak_bytes},
                     {"memory_limit_bytes", x.memory_limit_bytes},
                     {"swap_bytes", x.swap_bytes},
                     {"oom_kills", x.oom_kills},
                     {"processes", x.processes},
                     {"processes_limit", x.processes_limit},
                     {"cpu_us", x.cpu.count()},
                     {"cpu_limit_milli", x.cpu_limit_milli},
                     {"disk_bytes", x.disk_bytes},
                     {"disk_limit_bytes", x.disk_limit_bytes},
                     {"read_bytes", x.read_bytes},
                     {"written_bytes", x.written_bytes},
                     {"time_to_live_left_ms", x.time_to_live_left.count()},
                     {"rollout_budget_left_ms", x.rollout_budget_left.count()}};
  return print_json(std::move(out));
}

result<void> print_text(const sandbox_stats& x) {
  auto cores = x.cpu_limit_milli ? fmt::format("{} cores", x.cpu_limit_milli / 1000.) : "-";
  return print_table(
    {{"", "NOW", "PEAK", "LIMIT"},
     {"memory", bytes(x.memory_bytes), bytes(x.memory_peak_bytes), bytes(x.memory_limit_bytes)},
     {"swap", bytes(x.swap_bytes), "", ""},
     {"disk", bytes(x.disk_bytes), "", bytes(x.disk_limit_bytes)},
     {"processes", std::to_string(x.processes), "", std::to_string(x.processes_limit)},
     {"cpu", fmt::format("{:.3f} s", static_cast<double>(x.cpu.count()) / 1e6), "", cores},
     {"oom kills", std::to_string(x.oom_kills), "", ""},
     {"read", bytes(x.read_bytes), "", ""},
     {"written", bytes(x.written_bytes), "", ""}});
}

} // namespace

void add_stats_command(CLI::App& app, cli_options& options) {
  auto* command = app.add_subcommand("stats", "What a sandbox uses, and its limits");
  auto id = std::make_shared<std::string>();
  command->add_option("sandbox", *id, "Its id")->required();
  command->add_flag("--json", options.json, "As JSON");
  command->callback([&options, id] {
    options.with_client([&](client& at) -> result<void> {
      auto find = at.dsec.sandboxRequest();
      find.setId(id->c_str());
      auto found = wait(at, find.send());
      if (!found)
        return found.error();
      auto answer = wait(at, found->getSandbox().statsRequest().send());
      if (!answer)
        return answer.error();
      auto x = wire::read(answer->getStats());
      return options.json ? print_as_json(x) : print_text(x);
    });
  });
}

} // namespace dsec
