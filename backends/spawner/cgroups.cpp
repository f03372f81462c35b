#include "backends/spawner/cgroups.hpp"

#include "backends/kill_point.hpp"
#include "backends/spawner/names.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <set>
#include <sstream>

namespace dsec::spawner {

namespace {

/// Not a sandbox id, so it can never meet one.
constexpr const char* own_group = "_spawner";

/// Limits nothing, but counts; where a machine lacks it, the counts are missing and nothing else.
constexpr const char* io_controller = "+io";

void at_effect() {
  kill_point(crash_role::spawner);
}

result<descriptor> open_directory(const std::string& path) {
  descriptor fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd)
    return errno_error(errno, "open cgroup " + path);
  return fd;
}

result<void> write_file(int directory, const char* name, const std::string& value) {
  descriptor fd{::openat(directory, name, O_WRONLY | O_CLOEXEC)};
  if (!fd || ::write(fd.get(), value.data(), value.size()) < 0)
    return errno_error(errno, "write '" + value + "' to cgroup file " + name);
  return {};
}

result<void> write_path(const std::string& path, const std::string& value) {
  return write_file(AT_FDCWD, path.c_str(), value);
}

/// An existing group is fine: the roots are shared by every run of this spawner.
result<void> make_group(const std::string& path) {
  at_effect();
  if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST)
    return errno_error(errno, "make cgroup " + path);
  at_effect();
  return {};
}

result<void> remove_tree(const std::string& path) {
  if (DIR* directory = ::opendir(path.c_str())) {
    std::vector<std::string> children;
    while (auto* entry = ::readdir(directory))
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
        children.push_back(path + '/' + entry->d_name);
    ::closedir(directory);
    for (auto& child : children)
      if (auto removed = remove_tree(child); !removed)
        return removed;
  }
  if (::rmdir(path.c_str()) < 0 && errno != ENOENT)
    return errno_error(errno, "remove cgroup " + path);
  return {};
}

/// Field `wanted` (from 1) of a mountinfo line whose separator " - " starts at `dash`.
std::string unescaped(std::string text) {
  for (std::size_t at = 0; (at = text.find("\\040", at)) != std::string::npos; ++at)
    text.replace(at, 4, " ");
  return text;
}

bool has_option(std::string_view options, std::string_view wanted) {
  std::stringstream stream{std::string{options}};
  for (std::string option; std::getline(stream, option, ',');)
    if (option == wanted)
      return true;
  return false;
}

} // namespace

result<cgroup_layout> read_cgroup_layout(std::string_view mountinfo) {
  cgroup_layout layout;
  std::stringstream lines{std::string{mountinfo}};
  for (std::string line; std::getline(lines, line);) {
    auto dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::string skip, root, mount_point, type, source, options;
    std::stringstream{line} >> skip >> skip >> skip >> root >> mount_point;
    std::stringstream{line.substr(dash + 3)} >> type >> source >> options;
    mount_point = unescaped(std::move(mount_point));
    if (type == "cgroup2")
      layout.unified = mount_point;
    if (type != "cgroup")
      continue;
    for (auto [name, place] :
         {std::pair{"memory", &layout.memory}, {"pids", &layout.pids}, {"cpu", &layout.cpu}})
      if (has_option(options, name))
        *place = mount_point;
  }
  if (layout.unified.empty())
    return error{errc::unavailable, "find the unified cgroup hierarchy: no cgroup2 is mounted"};
  return layout;
}

cgroups::cgroups(cgroup_layout layout, std::string root)
  : layout_{std::move(layout)},
    root_{std::move(root)} {}

std::string cgroups::unified_root() const {
  return layout_.unified + '/' + root_;
}

std::string cgroups::group(std::uint32_t slot) const {
  return unified_root() + '/' + slot_name(slot);
}

std::string cgroups::outer(std::uint32_t slot) const {
  auto path = group(slot);
  return layout_.pure_v2() ? path + "/outer" : path;
}

/// Each hierarchy once, the unified one last: it is what says that a sandbox still lives.
std::vector<std::string> cgroups::roots() const {
  std::vector<std::string> found;
  for (auto* mount : {&layout_.memory, &layout_.pids, &layout_.cpu})
    if (!mount->empty()
        && std::find(found.begin(), found.end(), *mount + '/' + root_) == found.end())
      found.push_back(*mount + '/' + root_);
  found.push_back(unified_root());
  return found;
}

result<void> cgroups::prepare() const {
  for (auto& path : roots())
    if (auto made = make_group(path); !made)
      return made;
  // Groups inherit it at birth: without it force_empty would leave anonymous memory where it is.
  if (!layout_.memory.empty())
    if (auto set = write_path(layout_.memory + '/' + root_ + "/memory.swappiness", "100"); !set)
      return set;
  std::string controllers;
  for (auto [name, mount] :
       {std::pair{"memory", &layout_.memory}, {"pids", &layout_.pids}, {"cpu", &layout_.cpu}})
    if (mount->empty())
      controllers += std::string{controllers.empty() ? "+" : " +"} + name;
  if (controllers.empty())
    return {};
  for (auto& path : {layout_.unified, unified_root()}) {
    if (auto set = write_path(path + "/cgroup.subtree_control", controllers); !set)
      return set;
    (void)write_path(path + "/cgroup.subtree_control", io_controller);
  }
  return {};
}

result<void> cgroups::enter_own_group() const {
  auto path = unified_root() + '/' + own_group;
  if (auto made = make_group(path); !made)
    return made;
  return write_path(path + "/cgroup.procs", "0");
}

result<descriptor> cgroups::make_outer(std::uint32_t slot) const {
  auto path = group(slot);
  at_effect();
  if (::mkdir(path.c_str(), 0755) < 0) {
    if (errno == EEXIST)
      return error{errc::invalid_state, "make cgroup " + path + ": it exists"};
    return errno_error(errno, "make cgroup " + path);
  }
  at_effect();
  if (layout_.pure_v2())
    if (auto made = make_group(outer(slot)); !made)
      return made.error();
  return open_directory(outer(slot));
}

result<payload_groups> cgroups::make_payload(std::uint32_t slot, uid_t owner) const {
  payload_groups groups;
  auto unified = group(slot);
  std::string controllers;
  auto make = [&](const std::string& mount, const char* name, descriptor& into) -> result<void> {
    if (mount.empty()) {
      controllers += std::string{controllers.empty() ? "+" : " +"} + name;
      return {};
    }
    auto path = mount + '/' + root_ + '/' + slot_name(slot);
    if (auto made = make_group(path); !made)
      return made;
    auto opened = open_directory(path);
    if (!opened)
      return opened.error();
    into = *std::move(opened);
    return {};
  };
  if (auto r = make(layout_.memory, "memory", groups.memory); !r)
    return r.error();
  if (auto r = make(layout_.pids, "pids", groups.pids); !r)
    return r.error();
  if (auto r = make(layout_.cpu, "cpu", groups.cpu); !r)
    return r.error();
  if (!controllers.empty()) {
    if (auto r = write_path(unified + "/cgroup.subtree_control", controllers); !r)
      return r.error();
    (void)write_path(unified + "/cgroup.subtree_control", io_controller);
  }
  if (auto r = make_group(unified + "/payload"); !r)
    return r.error();
  auto payload = open_directory(unified + "/payload");
  if (!payload)
    return payload.error();
  groups.unified = *std::move(payload);
  if (::chown((unified + "/cgroup.procs").c_str(), owner, owner) < 0)
    return errno_error(errno, "give cgroup.procs of " + unified + " to its PID 1");
  return groups;
}

result<void> cgroups::limit(const payload_groups& groups, const payload_limits& limits) {
  auto memory = std::to_string(limits.memory_bytes);
  auto write = [&](const descriptor& v1, const char* v1_name, const char* v2_name,
                   const std::string& v1_value, const std::string& v2_value) {
    return v1 ? write_file(v1.get(), v1_name, v1_value)
              : write_file(groups.unified.get(), v2_name, v2_value);
  };
  // The order matters on v1: memory and swap together may not be limited below memory alone.
  if (auto r = write(groups.memory, "memory.limit_in_bytes", "memory.max", memory, memory); !r)
    return r;
  if (auto r = write(groups.memory, "memory.memsw.limit_in_bytes", "memory.swap.max", memory, "0");
      !r)
    return r;
  auto processes = std::to_string(limits.processes);
  if (auto r = write(groups.pids, "pids.max", "pids.max", processes, processes); !r)
    return r;
  if (limits.cpu_milli != 0) {
    auto quota = std::to_string(std::uint64_t{limits.cpu_milli} * 100);
    if (auto r = write(groups.cpu, "cpu.cfs_quota_us", "cpu.max", quota, quota + " 100000"); !r)
      return r;
  }
  at_effect();
  return {};
}

void cgroups::kill(std::uint32_t slot) const {
  at_effect();
  (void)write_path(group(slot) + "/cgroup.kill", "1");
  at_effect();
}

descriptor cgroups::events(std::uint32_t slot) const {
  return descriptor{::open((group(slot) + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)};
}

bool cgroups::populated(int events) {
  char text[256];
  auto size = ::pread(events, text, sizeof text - 1, 0);
  if (size <= 0)
    return false;
  text[size] = '\0';
  return std::strstr(text, "populated 1") != nullptr;
}

bool cgroups::holds(std::uint32_t slot, pid_t pid) const {
  descriptor fd{::open((outer(slot) + "/cgroup.procs").c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text(1 << 16, '\0');
  auto size = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (size <= 0)
    return false;
  text.resize(static_cast<std::size_t>(size));
  return ('\n' + text).find('\n' + std::to_string(pid) + '\n') != std::string::npos;
}

result<void> cgroups::remove(std::uint32_t slot) const {
  for (auto& root : roots()) {
    at_effect();
    if (auto removed = remove_tree(root + '/' + slot_name(slot)); !removed)
      return removed;
    at_effect();
  }
  return {};
}

std::vector<std::uint32_t> cgroups::slots() const {
  std::set<std::uint32_t> found;
  for (auto& root : roots()) {
    DIR* directory = ::opendir(root.c_str());
    if (!directory)
      continue;
    while (auto* entry = ::readdir(directory))
      if (auto slot = slot_of(entry->d_name))
        found.insert(*slot);
    ::closedir(directory);
  }
  return {found.begin(), found.end()};
}

result<void> cgroups::remove_roots() const {
  (void)write_path(layout_.unified + "/cgroup.procs", "0");
  for (auto& root : roots())
    if (auto removed = remove_tree(root); !removed)
      return removed;
  return {};
}

} // namespace dsec::spawner
