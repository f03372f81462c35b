#include "actors/scenario.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <yaml-cpp/yaml.h>

namespace dsec {

namespace {

std::chrono::milliseconds milliseconds_of(const char* field, double s) {
  // Not by what is too small or too large: ".nan" is neither.
  if (!(s >= 0 && s <= 1e6))
    throw std::invalid_argument{fmt::format("{}: {} s is not within 0 and 1000000", field, s)};
  return std::chrono::milliseconds{static_cast<std::int64_t>(s * 1000)};
}

std::chrono::milliseconds seconds(const YAML::Node& of, const char* field, double otherwise) {
  return milliseconds_of(field, of[field] ? of[field].as<double>() : otherwise);
}

std::uint64_t
number(const YAML::Node& of, const char* field, std::uint64_t least, std::uint64_t most) {
  if (!of[field])
    throw std::invalid_argument{fmt::format("{}: is missing", field)};
  auto x = of[field].as<std::uint64_t>();
  if (x < least || x > most)
    throw std::invalid_argument{
      fmt::format("{}: {} is not within {} and {}", field, x, least, most)};
  return x;
}

/// "[least, most]" in seconds.
void range(const YAML::Node& of, const char* field, std::chrono::milliseconds& least,
           std::chrono::milliseconds& most) {
  auto x = of[field];
  if (!x || !x.IsSequence() || x.size() != 2)
    throw std::invalid_argument{fmt::format("{}: must be [least, most] in seconds", field)};
  least = milliseconds_of(field, x[0].as<double>());
  most = milliseconds_of(field, x[1].as<double>());
  if (most < least)
    throw std::invalid_argument{fmt::format("{}: most must not be less than least", field)};
}

scenario_preemption preemption_of(const YAML::Node& x) {
  scenario_preemption made{seconds(x, "at", 0), seconds(x, "lasts", 10),
                           preempt_mode::until_request};
  auto mode = x["until"] ? x["until"].as<std::string>() : "request";
  if (mode == "resume")
    made.mode = preempt_mode::until_resume;
  else if (mode != "request")
    throw std::invalid_argument{fmt::format("until: '{}' is neither request nor resume", mode)};
  return made;
}

scenario_job job_of(const YAML::Node& x) {
  scenario_job made;
  made.name = job_id{x["name"] ? x["name"].as<std::string>() : std::string{}};
  if (auto ok = validate(made.name); !ok)
    throw std::invalid_argument{fmt::format("name: {}", ok.error().message)};
  made.at = seconds(x, "at", 0);
  made.sandboxes = number(x, "sandboxes", 1, 1'000'000);
  made.steps = number(x, "steps", 0, 100'000);
  range(x, "think", made.think_least, made.think_most);
  range(x, "act", made.act_least, made.act_most);
  for (const auto& preemption : x["preemptions"])
    made.preemptions.push_back(preemption_of(preemption));
  return made;
}

scenario scenario_of(const YAML::Node& x) {
  scenario made;
  made.name = x["name"] ? x["name"].as<std::string>() : std::string{};
  made.nodes = number(x, "nodes", 1, 10'000);
  made.capacity = number(x, "capacity", 1, 1'000'000);
  made.limit = seconds(x, "limit", 3600);
  if (auto lease = x["lease"])
    made.lease = {seconds(lease, "pause_after", 30), seconds(lease, "stop_after", 1800)};
  for (const auto& job : x["jobs"])
    made.jobs.push_back(job_of(job));
  for (const auto& death : x["deaths"])
    made.deaths.push_back({number(death, "node", 0, made.nodes - 1), seconds(death, "at", 0),
                           seconds(death, "back_after", 5)});
  return made;
}

} // namespace

result<scenario> load_scenario(const std::filesystem::path& path) {
  try {
    return scenario_of(YAML::LoadFile(path.string()));
  } catch (const YAML::BadFile&) {
    return error{errc::not_found, fmt::format("read scenario {}: no such file", path.string())};
  } catch (const std::exception& e) {
    return error{errc::invalid_argument,
                 fmt::format("read scenario {}: {}", path.string(), e.what())};
  }
}

} // namespace dsec
