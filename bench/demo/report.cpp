#include "bench/demo/report.hpp"

#include "bench/demo/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace dsec::demo {

namespace {

using json = nlohmann::json;

json percentiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  if (samples.empty())
    return {{"samples", 0}, {"p50", 0}, {"p99", 0}};
  auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  return {{"samples", samples.size()}, {"p50", at(0.5)}, {"p99", at(0.99)}};
}

/// The newest result of each rollout: a later run replays and says the same again.
std::map<std::string, json> rollouts_of(const std::vector<json>& events) {
  std::map<std::string, json> newest;
  for (const auto& event : events)
    if (event.value("event", "") == "rollout")
      newest[event.at("sandbox")] = event;
  return newest;
}

json last(const std::vector<json>& events, const char* kind) {
  for (auto it = events.rbegin(); it != events.rend(); ++it)
    if (it->value("event", "") == kind)
      return *it;
  return json::object();
}

double mib(const json& event, const char* field) {
  return event.value(field, 0.0) / (1 << 20);
}

} // namespace

json results(const std::vector<json>& events) {
  auto sums = add_up(events);
  auto verdict = judge(events);
  auto closing = last(events, "closing");
  std::uint64_t in_flight = 0;
  for (const auto& [key, count] : sums.sent)
    in_flight += count > 1 && sums.acked.contains(key) ? 1 : 0;
  json rollouts = json::array();
  std::uint64_t unexpected = 0;
  double reward = 0;
  for (const auto& [name, event] : rollouts_of(events)) {
    rollouts.push_back(event);
    unexpected += event.at("expect") != event.at("outcome") ? 1 : 0;
    reward += event.at("reward").get<double>();
  }
  json acked = json::array();
  for (const auto& [key, answer] : sums.acked)
    acked.push_back({key.first, key.second, answer});
  return {{"runs", sums.runs},
          {"rollouts", rollouts},
          {"unexpected", unexpected},
          {"mean_reward", rollouts.empty() ? 0 : reward / static_cast<double>(rollouts.size())},
          {"preempted", last(events, "preempted")},
          {"create_ms", percentiles(closing.value("create_ms", std::vector<double>{}))},
          {"exec_overhead_ms", percentiles(closing.value("exec_ms", std::vector<double>{}))},
          {"steps",
           {{"acknowledged", sums.acked.size()},
            {"replayed", closing.value("replayed", 0)},
            {"asked_again", in_flight},
            {"checked", verdict.checked},
            {"unreadable", verdict.unreadable},
            {"lost", verdict.lost},
            {"duplicated", verdict.duplicated},
            {"changed", verdict.changed}}},
          {"acked", acked}};
}

void print_table(const std::vector<json>& events) {
  auto r = results(events);

  struct row {
    unsigned rollouts = 0;
    double reward = 0;
    unsigned as_expected = 0;
    std::map<std::string, unsigned> outcomes;
  };

  std::map<std::string, row> rows;
  for (const auto& event : r["rollouts"]) {
    auto& x = rows[event["task"]];
    ++x.rollouts;
    x.reward += event["reward"].get<double>();
    x.as_expected += event["expect"] == event["outcome"] ? 1 : 0;
    ++x.outcomes[event["outcome"]];
  }
  fmt::print("\n{:<26} {:>8} {:>7} {:>9}  {}\n", "task", "rollouts", "reward", "as told",
             "outcomes");
  for (const auto& [task, x] : rows) {
    std::string outcomes;
    for (const auto& [name, count] : x.outcomes)
      outcomes += fmt::format("{}{} {}", outcomes.empty() ? "" : ", ", count, name);
    fmt::print("{:<26} {:>8} {:>7.2f} {:>6}/{:<2}  {}\n", task, x.rollouts, x.reward / x.rollouts,
               x.as_expected, x.rollouts, outcomes);
  }
  const auto& p = r["preempted"];
  if (!p.empty())
    fmt::print("\npreemption      {} of {} sandboxes reclaimed; memory {:.1f} MiB -> {:.1f} MiB\n",
               p.value("reclaimed", 0), p.value("sandboxes", 0), mib(p, "before_bytes"),
               mib(p, "after_bytes"));
  const auto& s = r["steps"];
  fmt::print(
    "create          p50 {:.1f} ms, p99 {:.1f} ms (asked -> running, the batch at once)\n"
    "exec overhead   p50 {:.2f} ms, p99 {:.2f} ms (round trip less the command's own time)\n"
    "steps           {} acknowledged in {} run(s); last run: {} replayed\n"
    "exactly once    {} checked inside the sandboxes, {} lost, {} duplicated, {} changed\n",
    r["create_ms"]["p50"].get<double>(), r["create_ms"]["p99"].get<double>(),
    r["exec_overhead_ms"]["p50"].get<double>(), r["exec_overhead_ms"]["p99"].get<double>(),
    s["acknowledged"].get<std::uint64_t>(), r["runs"].get<std::uint64_t>(),
    s["replayed"].get<std::uint64_t>(), s["checked"].get<std::uint64_t>(), s["lost"].size(),
    s["duplicated"].size(), s["changed"].size());
}

} // namespace dsec::demo
