#include "bench/peers/oci_peer.hpp"

#include "bench/layer_mount.hpp"
#include "bench/new_namespace.hpp"
#include "bench/report.hpp"
#include "bench/spawn.hpp"

#include <nlohmann/json.hpp>
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>
#include <sched.h>

namespace dsec::bench {

namespace {

using nlohmann::json;

constexpr auto period_us = 100'000;

/// An OCI configuration; no rlimits, since this may run where they cannot be raised.
json configuration(const peer_root& root, const sandbox_limits& limits,
                   const std::vector<std::string>& argv) {
  const json ids{{{"containerID", 0}, {"hostID", first_uid}, {"size", 65536}}};
  json namespaces = json::array();
  for (const auto* kind : {"pid", "mount", "network", "ipc", "uts", "cgroup", "user"})
    namespaces.push_back({{"type", kind}});
  return {
    {"ociVersion", "1.0.0"},
    {"root", {{"path", root.path().string()}}},
    {"hostname", "sandbox"},
    {"process",
     {{"terminal", false},
      {"user", {{"uid", 0}, {"gid", 0}}},
      {"args", argv},
      {"env", {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}},
      {"cwd", "/"},
      {"noNewPrivileges", true}}},
    {"mounts",
     {{{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}},
      {{"destination", "/dev"},
       {"type", "tmpfs"},
       {"source", "tmpfs"},
       {"options", {"nosuid", "mode=755", "size=64k"}}}}},
    {"linux",
     {{"namespaces", namespaces},
      {"uidMappings", ids},
      {"gidMappings", ids},
      {"resources",
       {{"memory", {{"limit", limits.memory_bytes}, {"swap", limits.memory_bytes}}},
        {"pids", {{"limit", limits.processes}}},
        {"cpu", {{"quota", limits.cpu_milli * (period_us / 1000)}, {"period", period_us}}}}}}}};
}

/// Covers the unified cgroup hierarchy where the v1 ones are in use.
bool hide_unified_groups() {
  const char* unified = "/sys/fs/cgroup/unified";
  return ::access(unified, F_OK) != 0 || ::mount("tmpfs", unified, "tmpfs", 0, nullptr) == 0;
}

} // namespace

peer_root::peer_root(const std::vector<std::string>& layers, const std::filesystem::path& folder,
                     const std::filesystem::path& scratch)
  : path_{folder} {
  const auto upper = scratch / "peer-upper";
  const auto work = scratch / "peer-work";
  for (const auto& path : {upper, work}) {
    checked(::mkdir(path.c_str(), 0755), "mkdir " + path.string());
    checked(::chown(path.c_str(), first_uid, first_uid), "chown " + path.string());
  }
  const auto overlay = mount_overlay(mount_layers(layers), upper, work);
  checked(::move_mount(overlay.get(), "", AT_FDCWD, path_.c_str(), MOVE_MOUNT_F_EMPTY_PATH),
          "mount " + path_.string());
  mount_namespace_ = make_namespace({CLONE_NEWNS, "mnt", hide_unified_groups});
}

oci_peer::oci_peer(std::string program, const peer_root& root, const sandbox_limits& limits,
                   std::filesystem::path folder)
  : program_{std::move(program)},
    root_{root},
    folder_{std::move(folder)},
    name_{"dsec-bench-" + std::to_string(::getpid()) + "-" + program_} {
  const std::pair<const char*, std::vector<std::string>> bundles[]{
    {"true", {"/bin/true"}}, {"holder", {"/bin/sleep", "infinity"}}};
  for (const auto& [bundle, argv] : bundles) {
    std::filesystem::create_directories(folder_ / bundle);
    std::ofstream{folder_ / bundle / "config.json"} << configuration(root, limits, argv);
  }
  run();
}

oci_peer::~oci_peer() {
  // What a run that failed has left counts too, so there may be nothing to delete.
  for (const auto& name : {name_, name_ + "-true"})
    try {
      call({"delete", "--force", name});
    } catch (const std::exception&) {
    }
}

double oci_peer::run() {
  const stopwatch clock;
  call({"run", "--bundle", folder_ / "true", name_ + "-true"});
  return clock.ms();
}

double oci_peer::exec() {
  if (!holds_) {
    call({"run", "--detach", "--bundle", folder_ / "holder", name_});
    holds_ = true;
  }
  const stopwatch clock;
  call({"exec", name_, "/bin/true"});
  return clock.ms();
}

void oci_peer::call(std::vector<std::string> words) {
  words.insert(words.begin(), {program_, "--root", folder_ / "state"});
  run_program(words, &root_.mount_namespace());
}

std::unique_ptr<oci_peer> open_peer(const std::string& program, const peer_root& root,
                                    const sandbox_limits& limits, const place& where,
                                    report& found) {
  try {
    return std::make_unique<oci_peer>(program, root, limits, where.folder(program));
  } catch (const std::exception& failure) {
    found.missing_peer(program, failure.what());
    return nullptr;
  }
}

} // namespace dsec::bench
