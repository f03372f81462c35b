#include "sdk/cli/clock_options.hpp"

#include "sdk/cli/numbers.hpp"

#include <tuple>

namespace dsec {

namespace {

constexpr double clock_s_max = static_cast<double>(clock_max.count()) / 1000;

result<std::chrono::milliseconds>
parse_time(const char* name, const std::string& text, std::chrono::milliseconds before) {
  bool more = text.starts_with('+');
  auto time = parse_seconds(name, more ? text.substr(1) : text, clock_s_max);
  if (!time || !more)
    return time;
  if (before.count() == 0)
    return error{errc::invalid_argument,
                 fmt::format("{} \"{}\": that clock does not run, so there is nothing to add to",
                             name, text)};
  if (*time + before > clock_max)
    return error{errc::invalid_argument,
                 fmt::format("{} is {}, on top of {} s; at most {} s together", name, text,
                             static_cast<double>(before.count()) / 1000, clock_s_max)};
  return *time + before;
}

} // namespace

void clock_options::add_to(CLI::App& command) {
  command.add_option("--ttl", time_to_live,
                     "Seconds from its creation to its end, whatever it does; 0: none");
  command.add_option("--budget", rollout_budget,
                     "Seconds in which it may run, not counting pauses; 0: no limit");
  command.add_option("--idle", idle_timeout, "Seconds without use until --on-idle; 0: never");
  command.add_option("--on-idle", on_idle, "reclaim (the next request brings it back) or stop")
    ->check(CLI::IsMember({"reclaim", "stop"}));
}

bool clock_options::given() const {
  return !time_to_live.empty() || !rollout_budget.empty() || !idle_timeout.empty()
         || !on_idle.empty();
}

result<sandbox_clocks> clock_options::apply(sandbox_clocks on) const {
  for (auto [name, text, to] : {std::tuple{"--ttl", &time_to_live, &on.time_to_live},
                                {"--budget", &rollout_budget, &on.rollout_budget},
                                {"--idle", &idle_timeout, &on.idle_timeout}}) {
    if (text->empty())
      continue;
    auto time = parse_time(name, *text, *to);
    if (!time)
      return time.error();
    *to = *time;
  }
  if (!on_idle.empty() && on.idle_timeout.count() == 0)
    return error{errc::invalid_argument,
                 fmt::format("--on-idle {}: nothing follows without an --idle", on_idle)};
  if (!on_idle.empty())
    on.on_idle = on_idle == "stop" ? idle_action::stop : idle_action::reclaim;
  if (auto valid = validate(on); !valid)
    return valid.error();
  return on;
}

} // namespace dsec
