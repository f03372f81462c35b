#include "bench/demo/census.hpp"

#include "backends/spawner/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>
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

void count_processes(const installation& where, census& x) {
  auto root = "/" + cgroup_root(where) + "/";
  std::set<std::string> networks;
  std::set<std::string> mount_namespaces;
  auto own_mounts = link_of("/proc/self/ns/mnt");
  for (const auto& process : entries("/proc")) {
    if (!is_pid(process))
      continue;
    auto groups = slurp(process / "cgroup");
    auto at = groups.find(root);
    if (at == std::string::npos)
      continue;
    auto id = sandbox_in(groups.substr(at, groups.find('\n', at) - at));
    auto pid = process.filename().string();
    if (id.empty()) {
      ++x.standing["spawner processes"];
      for (const auto& fd : entries(process / "fd"))
        if (auto target = link_of(fd); target.rfind("net:[", 0) == 0)
          networks.insert(target);
    } else {
      x.of_sandboxes["processes"].insert(id + " pid " + pid);
      x.of_sandboxes["network namespaces"].insert(link_of(process / "ns/net"));
    }
    auto mounts = link_of(process / "ns/mnt");
    if (mounts != own_mounts)
      mount_namespaces.insert(mounts);
  }
  auto& used = x.of_sandboxes["network namespaces"];
  used.erase(link_of("/proc/self/ns/net"));
  used.erase("");
  x.standing["pooled network namespaces"] = networks.size();
  x.standing["mount namespaces"] = mount_namespaces.size();
}

void count_cgroups(const installation& where, census& x) {
  auto look = [&](const fs::path& hierarchy) {
    for (const auto& group : entries(hierarchy / cgroup_root(where)))
      if (!sandbox_in(group.filename().string()).empty())
        x.of_sandboxes["cgroups"].insert(group.string());
  };
  look("/sys/fs/cgroup");
  for (const auto& hierarchy : entries("/sys/fs/cgroup"))
    look(hierarchy);
}

void count_files(const installation& where, census& x) {
  for (const auto& file : entries(where.run_dir))
    if (!sandbox_in(file.filename().string()).empty())
      x.of_sandboxes["run files"].insert(file.filename().string());
  for (const auto& subvolume : entries(where.run_dir / "scratch"))
    if (!sandbox_in(subvolume.filename().string()).empty())
      x.of_sandboxes["subvolumes"].insert(subvolume.filename().string());
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
  count_processes(where, x);
  count_cgroups(where, x);
  count_files(where, x);
  count_kernel_objects(where, x);
  return x;
}

census settled_census(const installation& where, std::chrono::milliseconds patience,
                      const std::function<bool(const census&)>& good) {
  constexpr auto pause = std::chrono::milliseconds{100};
  constexpr int calm_wanted = 15;
  auto until = std::chrono::steady_clock::now() + patience;
  auto last = take_census(where);
  for (int calm = 0; std::chrono::steady_clock::now() < until;) {
    std::this_thread::sleep_for(pause);
    auto now = take_census(where);
    calm = good(now) && now == last ? calm + 1 : 0;
    last = std::move(now);
    if (calm >= calm_wanted)
      break;
  }
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
  // dsec-init is the process of the sandbox that stands in the host's own pid namespace.
  std::map<std::string, int> found;
  auto root = "/" + cgroup_root(where) + "/";
  auto own = link_of("/proc/self/ns/pid");
  for (const auto& process : entries("/proc")) {
    if (!is_pid(process))
      continue;
    auto groups = slurp(process / "cgroup");
    auto at = groups.find(root);
    if (at == std::string::npos || link_of(process / "ns/pid") != own)
      continue;
    if (auto id = sandbox_in(groups.substr(at, groups.find('\n', at) - at)); !id.empty())
      found[id] = std::stoi(process.filename().string());
  }
  return found;
}

int spawner_pid(const installation& where) {
  for (const auto& process : entries("/proc")) {
    if (!is_pid(process) || fs::path{link_of(process / "exe")}.filename() != "dsec-spawner")
      continue;
    auto groups = slurp(process / "cgroup");
    auto at = groups.find("/" + cgroup_root(where) + "/");
    if (at == std::string::npos
        || !sandbox_in(groups.substr(at, groups.find('\n', at) - at)).empty())
      continue;
    // Its workers are forks of it; the spawner is the one whose parent is none of them.
    auto status = slurp(process / "status");
    auto parent = std::stoi(status.substr(status.find("PPid:") + 5));
    if (fs::path{link_of(fmt::format("/proc/{}/exe", parent))}.filename() != "dsec-spawner")
      return std::stoi(process.filename().string());
  }
  return -1;
}

} // namespace dsec::demo
