#include "bench/demo/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <yaml-cpp/yaml.h>

namespace dsec::demo {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in{path};
  if (!in)
    throw YAML::Exception{YAML::Mark::null_mark(), "cannot read " + path.string()};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

template <class T>
T need(const YAML::Node& node, const char* field) {
  if (!node[field])
    throw YAML::Exception{node.Mark(), fmt::format("field '{}' is missing", field)};
  return node[field].as<T>();
}

action read_action(const YAML::Node& node, const fs::path& folder) {
  action x;
  x.think = std::chrono::milliseconds{node["think_ms"].as<std::int64_t>(0)};
  x.deadline = std::chrono::milliseconds{node["deadline_ms"].as<std::int64_t>(30'000)};
  if (node["patch"]) {
    x.command = "patch -p1 --batch";
    x.input = read_text(folder / node["patch"].as<std::string>());
  } else {
    x.command = need<std::string>(node, "run");
  }
  return x;
}

task read_task(const fs::path& file) {
  auto node = YAML::LoadFile(file.string());
  auto folder = file.parent_path();
  task x;
  x.name = folder.filename().string();
  x.source = need<std::string>(node, "source");
  x.summary = need<std::string>(node, "summary");
  x.bug = folder / need<std::string>(node, "bug");
  x.collect = need<std::vector<std::string>>(node, "collect");
  auto grade = need<YAML::Node>(node, "grade");
  x.grade_command = need<std::string>(grade, "run");
  x.grade_tests = need<std::uint64_t>(grade, "tests");
  x.grade_deadline = std::chrono::milliseconds{grade["deadline_ms"].as<std::int64_t>(60'000)};
  for (const auto& entry : need<YAML::Node>(node, "trajectories")) {
    trajectory t{need<std::string>(entry, "name"), need<std::string>(entry, "expect"), {}};
    for (const auto& step : need<YAML::Node>(entry, "steps"))
      t.actions.push_back(read_action(step, folder));
    x.trajectories.push_back(std::move(t));
  }
  if (x.trajectories.empty())
    throw YAML::Exception{node.Mark(), "field 'trajectories' is empty"};
  return x;
}

void read_environment(const fs::path& file, task_set& set) {
  auto node = YAML::LoadFile(file.string());
  set.suite = need<std::string>(node, "suite");
  set.include = need<std::vector<std::string>>(node, "include");
  set.toolkit = file.parent_path() / need<std::string>(node, "toolkit");
  for (const auto& variable : need<YAML::Node>(node, "env"))
    set.defaults.env.emplace_back(variable.first.as<std::string>(),
                                  variable.second.as<std::string>());
  auto limits = need<YAML::Node>(node, "limits");
  set.defaults.limits.memory_bytes = need<std::uint64_t>(limits, "memory_mb") << 20;
  set.defaults.limits.processes = need<std::uint32_t>(limits, "processes");
  set.defaults.limits.disk_bytes = need<std::uint64_t>(limits, "disk_mb") << 20;
}

} // namespace

result<task_set> load_tasks(const fs::path& directory) {
  task_set set;
  fs::path file = directory / "environment.yaml";
  // yaml-cpp reports by exception; it ends here.
  try {
    read_environment(file, set);
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator{directory})
      if (entry.is_directory())
        folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const auto& folder : folders) {
      file = folder / "task.yaml";
      set.tasks.push_back(read_task(file));
    }
  } catch (const std::exception& e) {
    return error{errc::invalid_argument, fmt::format("reading {}: {}", file.string(), e.what())};
  }
  if (set.tasks.empty())
    return error{errc::invalid_argument, fmt::format("no tasks in {}", directory.string())};
  return set;
}

std::string workspace_of(const task& x) {
  return "/workspace/" + x.source;
}

} // namespace dsec::demo
