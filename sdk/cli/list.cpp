#include "sdk/cli/list.hpp"

#include "sdk/cli/shown.hpp"
#include "sdk/cli/standard_output.hpp"
#include "state/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace dsec {

namespace {

/// In characters.
std::size_t width(const std::string& shown_text) {
  return static_cast<std::size_t>(
    std::ranges::count_if(shown_text, [](char c) { return (c & 0xc0) != 0x80; }));
}

} // namespace

result<void> print_table(const std::vector<std::vector<std::string>>& rows) {
  auto cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = shown(row[i]);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  }
  std::string lines;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      lines += row[i];
      if (i + 1 < row.size())
        lines.append(widths[i] - width(row[i]) + 2, ' ');
    }
    lines += '\n';
  }
  return print(lines);
}

std::string age(std::int64_t since_ms) {
  auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
               .count();
  auto s = std::max<std::int64_t>(0, (now - since_ms) / 1000);
  if (s < 120)
    return fmt::format("{} s", s);
  if (s < 120 * 60)
    return fmt::format("{} min", s / 60);
  if (s < 48 * 3600)
    return fmt::format("{} h", s / 3600);
  return fmt::format("{} d", s / 86400);
}

nlohmann::json as_json(const sandbox_clocks& x) {
  return {{"time_to_live_ms", x.time_to_live.count()},
          {"rollout_budget_ms", x.rollout_budget.count()},
          {"idle_timeout_ms", x.idle_timeout.count()},
          {"on_idle", std::string{to_string(x.on_idle)}}};
}

result<void> print_sandboxes(const std::vector<sandbox_info>& all, bool json) {
  if (json) {
    auto list = nlohmann::json::array();
    for (const auto& x : all)
      list.push_back({{"id", x.id.str()},
                      {"job", x.job.str()},
                      {"index", x.index},
                      {"state", std::string{to_string(x.state)}},
                      {"cause", std::string{to_string(x.cause)}},
                      {"detail", x.detail},
                      {"steps", x.steps},
                      {"created_ms", x.created_ms},
                      {"ended_ms", x.ended_ms},
                      {"clocks", as_json(x.clocks)}});
    return print_json(std::move(list));
  }
  std::vector<std::vector<std::string>> rows{
    {"ID", "JOB", "INDEX", "STATE", "STEPS", "AGE", "CAUSE"}};
  for (const auto& x : all) {
    auto cause = x.cause == end_cause::none ? std::string{} : std::string{to_string(x.cause)};
    if (!x.detail.empty())
      cause += (cause.empty() ? "" : ": ") + x.detail;
    rows.push_back({x.id.str(), x.job.str(), std::to_string(x.index),
                    std::string{to_string(x.state)}, std::to_string(x.steps), age(x.created_ms),
                    cause});
  }
  return print_table(rows);
}

} // namespace dsec
