#include "bench/demo/census.hpp"

#include "backends/spawner/names.hpp"
#include "bench/waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>
#include <vector>

namespace dsec::demo {

namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string link_of(const fs::path& path) {
  std::error_code ec;
  auto target = fs::read_symlink(path, ec);
  return ec ? std::string{} : target.string();
}

std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator it{directory, ec}, end; !ec && it != end; it.increment(ec))
    found.push_back(it->path());
  return found;
}

/// The first sandbox id in `text`, or nothing.
std::string sandbox_in(const std::string& text) {
  static const std::regex id{R"(\bn[0-9a-f]{8}-[0-9]+)"};
  std::smatch match;
  return std::regex_search(text, match, id) ? match.str() : std::string{};
}

std::string cgroup_root(const installation& where) {
  return spawner::names{where.run_dir.string(), where.data_dir.string()}.cgroup_root();
}

bool is_pid(const fs::path& path) {
  auto name = path.filename().string();
  return !name.empty()
         && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// What the lock files in the run directory say: a slot is a sandbox's, or is prepared for the next
/// one.
struct slots {
  std::map<std::string, std::string> sandbox; ///< "_<slot>" -> sandbox id.
  std::map<std::string, int> init;            ///< Sandbox id -> pid of its dsec-init.
  std::set<std::string> prepared;             ///< "_<slot>".

  explicit slots(const installation& where) {
    for (const auto& file : entries(where.run_dir)) {
      if (file.extension() != ".lock" || file.stem() == "spawner")
        continue;
      std::istringstream words{slurp(file)};
      std::string word;
      unsigned slot = 0;
      int pid = 0;
      words >> word >> slot >> word >> pid;
      auto name = file.stem().string();
      if (name.starts_with('_')) {
        prepared.insert(name);
      } else {
        sandbox[fmt::format("_{}", slot)] = name;
        init[name] = pid;
      }
    }
  }

  /// Whose a group or subvolume of this name is: a sandbox; nobody's, if it has the name of a slot
  /// that nobody holds; or empty, if it stands between sandboxes.
  std::string owner(const std::string& name) const {
    if (auto id = sandbox_in(name); !id.empty())
      return id;
    if (auto held = sandbox.find(name); held != sandbox.end())
      return held->second;
    return prepared.contains(name) || !is_pid(name.substr(1)) ? std::string{} : "slot " + name;
  }
};

/// The component after the installation's root in /proc/<pid>/cgroup; empty: not one of its
/// processes.
std::string group_of(const fs::path& process, const std::string& root) {
  auto groups = slurp(process / "cgroup");
  auto at = groups.find(root);
  if (at == std::string::npos)
    return {};
  auto rest = groups.substr(at + root.size());
  return rest.substr(0, rest.find_first_of("/\n"));
}

void count_processes(const installation& where, const slots& held, census& x) {
  auto root = "/" + cgroup_root(where) + "/";
  std::set<std::string> pooled;
  auto own_network = link_of("/proc/self/ns/net");
  for (const auto& process : entries("/proc")) {
    if (!is_pid(process))
      continue;
    auto group = group_of(process, root);
    if (group.empty())
      continue;
    auto owner = held.owner(group);
    auto network = link_of(process / "ns/net");
    if (!owner.empty()) {
      x.of_sandboxes["processes"].insert(owner + " pid " + process.filename().string());
      if (!network.empty() && network != own_network)
        x.of_sandboxes["network namespaces"].insert(network);
      continue;
    }
    ++x.standing[held.prepared.contains(group) ? "prepared processes" : "spawner processes"];
    pooled.insert(network);
    for (const auto& fd : entries(process / "fd"))
      if (auto target = link_of(fd); target.starts_with("net:["))
        pooled.insert(target);
  }
  pooled.erase(own_network);
  pooled.erase("");
  x.standing["pooled network namespaces"] = pooled.size();
}

void count_cgroups(const installation& where, const slots& held, census& x) {
  auto look = [&](const fs::path& hierarchy) {
    for (const auto& group : entries(hierarchy / cgroup_root(where)))
      if (fs::is_directory(group) && !held.owner(group.filename().string()).empty())
        x.of_sandboxes["cgroups"].insert(group.string());
  };
  look("/sys/fs/cgroup");
  for (const auto& hierarchy : entries("/sys/fs/cgroup"))
    look(hierarchy);
}

void count_files(const installation& where, const slots& held, census& x) {
  for (const auto& file : entries(where.run_dir))
    if (!sandbox_in(file.filename().string()).empty())
      x.of_sandboxes["run files"].insert(file.filename().string());
  for (const auto& subvolume : entries(where.run_dir / "scratch"))
    if (auto owner = held.owner(subvolume.filename().string()); !owner.empty())
      x.of_sandboxes["subvolumes"].insert(owner);
  x.standing["prepared sandboxes"] = held.prepared.size();
}

void count_kernel_objects(const installation& where, census& x) {
  std::istringstream mounts{slurp("/proc/self/mountinfo")};
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(where.run_dir.string() + "/") == std::string::npos)
      continue;
    if (auto id = sandbox_in(line); !id.empty())
      x.of_sandboxes["mounts"].insert(id);
    else if (line.find("/layers/") != std::string::npos)
      ++x.standing["layer mounts"];
    else
      ++x.standing["mounts"];
  }
  for (const auto& device : entries("/sys/block"))
    if (slurp(device / "loop/backing_file").rfind(where.data_dir.string() + "/", 0) == 0)
      ++x.standing["loop devices"];
  std::istringstream swaps{slurp("/proc/swaps")};
  for (std::string line; std::getline(swaps, line);)
    x.standing["swap files"] += line.rfind(where.data_dir.string() + "/", 0) == 0 ? 1 : 0;
}

/// Layers stay mounted once used; the other standing things are always the same.
bool may_grow(const std::string& kind) {
  return kind == "layer mounts";
}

} // namespace

std::uint64_t census::leaks() const {
  std::uint64_t sum = 0;
  for (const auto& [kind, things] : of_sandboxes)
    sum += things.size();
  return sum;
}

census take_census(const installation& where) {
  census x;
  slots held{where};
  count_processes(where, held, x);
  count_cgroups(where, held, x);
  count_files(where, held, x);
  count_kernel_objects(where, x);
  return x;
}

census settled_census(const installation& where, std::chrono::milliseconds patience,
                      const std::function<bool(const census&)>& good) {
  constexpr auto pause = std::chrono::milliseconds{100};
  constexpr int calm_wanted = 8;
  auto last = take_census(where);
  int calm = 0;
  // Nobody is told when other processes' namespaces, descriptors and loop devices go.
  bench::ask_until(bench::within(patience), pause, [&] {
    auto now = take_census(where);
    calm = good(now) && now == last ? calm + 1 : 0;
    last = std::move(now);
    return calm >= calm_wanted;
  });
  return last;
}

std::set<std::string> leaked(const census& before, const census& after) {
  std::set<std::string> lines;
  for (const auto& [kind, things] : after.of_sandboxes)
    for (const auto& thing : things)
      lines.insert(fmt::format("{}: {}", kind, thing));
  for (const auto& [kind, count] : after.standing) {
    auto known = before.standing.find(kind);
    auto was = known == before.standing.end() ? 0 : known->second;
    if (count > was && !may_grow(kind))
      lines.insert(fmt::format("{}: {} before, {} after", kind, was, count));
  }
  return lines;
}

std::string describe(const census& x) {
  std::string text;
  auto add = [&](const std::string& kind, std::uint64_t count) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind, count);
  };
  for (const auto& [kind, things] : x.of_sandboxes)
    if (!things.empty())
      add(kind, things.size());
  for (const auto& [kind, count] : x.standing)
    add(kind, count);
  return text;
}

std::map<std::string, int> init_pids(const installation& where) {
  return slots{where}.init;
}

int spawner_pid(const installation& where) {
  int pid = -1;
  std::istringstream{slurp(where.run_dir / "spawner.lock")} >> pid;
  auto program = fs::path{link_of(fmt::format("/proc/{}/exe", pid))}.filename().string();
  return program.starts_with("dsec-spawner") ? pid : -1;
}

} // namespace dsec::demo
