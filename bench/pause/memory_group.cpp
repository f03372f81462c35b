#include "bench/pause/memory_group.hpp"

#include "bench/kernel_calls.hpp"
#include "bench/waits.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace dsec::bench {

namespace {

constexpr auto patience = std::chrono::seconds{30};

bool has_v1_memory() {
  return ::access("/sys/fs/cgroup/memory", F_OK) == 0;
}

} // namespace

memory_group::memory_group(const std::string& name)
  : unified_{(has_v1_memory() ? "/sys/fs/cgroup/unified/" : "/sys/fs/cgroup/") + name},
    memory_{has_v1_memory() ? "/sys/fs/cgroup/memory/" + name : unified_},
    v1_{has_v1_memory()} {}

memory_group memory_group::of_sandbox(const std::filesystem::path& run_dir, const std::string& id) {
  std::ifstream lock{run_dir / (id + ".lock")};
  std::string word;
  pid_t pid = 0;
  while (lock >> word && word != "pid")
    continue;
  lock >> pid;
  std::ifstream groups{"/proc/" + std::to_string(pid) + "/cgroup"};
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::/")) {
      std::filesystem::path group = line.substr(4);
      return memory_group{has_v1_memory() ? group : group.parent_path() / "payload"};
    }
  throw std::runtime_error{"sandbox " + id + " has no supervisor in " + run_dir.string()};
}

void memory_group::make() const {
  checked(::mkdir(unified_.c_str(), 0755), "mkdir " + unified_);
  if (v1_)
    checked(::mkdir(memory_.c_str(), 0755), "mkdir " + memory_);
}

void memory_group::remove() const {
  wait_for_group(unified_, "populated 0", within(patience));
  ::rmdir(unified_.c_str());
  ::rmdir(memory_.c_str());
}

std::vector<std::string> memory_group::joined(const std::vector<std::string>& argv) const {
  std::vector<std::string> command{
    "/bin/sh", "-c",
    R"(echo 0 > "$0/cgroup.procs" && echo 0 > "$1/cgroup.procs" && shift && exec "$@")", unified_,
    memory_};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

void memory_group::begin_freeze() const {
  write_file(unified_ + "/cgroup.freeze", "1");
}

void memory_group::await_frozen() const {
  if (!wait_for_group(unified_, "frozen 1", within(patience)))
    throw std::runtime_error{"freeze " + unified_ + ": not frozen after 30 s"};
}

void memory_group::thaw() const {
  write_file(unified_ + "/cgroup.freeze", "0");
}

void memory_group::page_out() const {
  if (v1_)
    write_file(memory_ + "/memory.force_empty", "1");
  else
    write_file(memory_ + "/memory.reclaim", std::to_string(resident_bytes()));
}

std::uint64_t memory_group::resident_bytes() const {
  const auto all = v1_ ? number("memory.usage_in_bytes") : number("memory.current");
  const auto others = v1_ ? number("memory.kmem.usage_in_bytes") + number("memory.stat", "cache")
                          : number("memory.stat", "kernel") + number("memory.stat", "file");
  return all - std::min(all, others);
}

std::uint64_t memory_group::number(const std::string& file, const std::string& key) const {
  std::ifstream words{memory_ + "/" + file};
  for (std::string word; !key.empty() && words >> word && word != key;)
    continue;
  std::uint64_t value = 0;
  words >> value;
  return value;
}

} // namespace dsec::bench
