#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_link.hpp"
#include "sdk/cli/list.hpp"
#include "sdk/cli/options.hpp"

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include <fstream>
#include <future>
#include <unistd.h>

namespace dsec {

namespace {

/// One question to the machine and what it means for dsec.
struct finding {
  std::string what;
  bool good = false;
  std::string detail;
};

bool file_has_line(const char* path, std::string_view word) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);)
    if (line.find(word) != std::string::npos)
      return true;
  return false;
}

std::string first_line(const std::string& command) {
  std::string line;
  if (auto* pipe = ::popen((command + " 2>/dev/null").c_str(), "re")) {
    char buffer[256];
    if (std::fgets(buffer, sizeof buffer, pipe))
      line = buffer;
    ::pclose(pipe);
  }
  while (!line.empty() && line.back() == '\n')
    line.pop_back();
  return line;
}

finding kernel() {
  utsname name{};
  ::uname(&name);
  unsigned major = 0;
  unsigned minor = 0;
  std::sscanf(name.release, "%u.%u", &major, &minor);
  return {"kernel", major > 6 || (major == 6 && minor >= 7),
          fmt::format("{} (6.7 or newer: limits of the scratch need btrfs simple quotas)",
                      name.release)};
}

finding filesystem(const char* name, const char* why) {
  bool known = file_has_line("/proc/filesystems", name);
  return {name, known, fmt::format("{}; {}", known ? "known to the kernel" : "missing", why)};
}

finding cgroups() {
  std::ifstream file{"/sys/fs/cgroup/cgroup.controllers"};
  std::string v2;
  std::getline(file, v2);
  bool v1 = file_has_line("/proc/mounts", "cgroup rw") || file_has_line("/proc/mounts", ",memory");
  bool unified = file_has_line("/proc/mounts", "cgroup2");
  bool memory_v2 = v2.find("memory") != std::string::npos;
  return {"cgroups", unified && (v1 || memory_v2),
          fmt::format("unified hierarchy {}, memory controller {}", unified ? "mounted" : "missing",
                      memory_v2 ? "v2" : (v1 ? "v1" : "missing"))};
}

finding swap() {
  bool configured =
    file_has_line("/proc/filesystems", "nodev") && ::access("/proc/swaps", R_OK) == 0;
  return {"swap", configured,
          configured ? "the kernel swaps; the spawner adds its own file for reclaim"
                     : "this kernel does not swap: paused sandboxes keep their memory"};
}

finding criu() {
  auto version = first_line("criu --version");
  unsigned major = 0;
  std::sscanf(version.c_str(), "Version: %u", &major);
  return {"criu", major >= 4,
          version.empty() ? "not installed: no checkpoint with memory"
                          : fmt::format("{} (4 or newer on this kernel)", version)};
}

finding spawner(const cli_options& options) {
  auto socket = options.run_dir / "spawner.sock";
  if (::access(socket.c_str(), F_OK) != 0)
    return {"spawner", ::geteuid() == 0,
            ::geteuid() == 0
              ? fmt::format("not running in {}; `serve` starts it", options.run_dir.string())
              : fmt::format("not running in {}, and only root can start it",
                            options.run_dir.string())};
  io_loop loop;
  std::unique_ptr<spawner_link> link;
  std::promise<result<spawner_report>> answer;
  loop.run([&] {
    link =
      std::make_unique<spawner_link>(loop, spawner_options{options.data_dir, options.run_dir, {}});
    link->hello([&](result<spawner_report> x) { answer.set_value(std::move(x)); });
  });
  auto hello = answer.get_future().get();
  loop.run([&] { link.reset(); });
  if (!hello)
    return {"spawner", false, hello.error().message};
  return {"spawner", true,
          fmt::format("pid {}, {} of {} slots used, {} MiB swap, cgroups {} below {}", hello->pid,
                      hello->slots_used, hello->slots, hello->swap_bytes >> 20, hello->cgroup,
                      hello->cgroup_root)};
}

} // namespace

void add_doctor_command(CLI::App& app, cli_options& options) {
  auto* doctor = app.add_subcommand("doctor", "What this machine offers, and what is missing");
  doctor->add_flag("--json", options.json, "As JSON");
  doctor->callback([&options] {
    std::vector<finding> all{kernel(),
                             {"root", ::geteuid() == 0, "needed to start the spawner"},
                             cgroups(),
                             filesystem("erofs", "layers"),
                             filesystem("overlay", "the sandbox's root"),
                             filesystem("btrfs", "scratch with disk limits"),
                             swap(),
                             criu(),
                             spawner(options)};
    auto list = nlohmann::json::array();
    std::vector<std::vector<std::string>> rows{{"WHAT", "OK", "DETAIL"}};
    for (const auto& x : all) {
      list.push_back({{"what", x.what}, {"ok", x.good}, {"detail", x.detail}});
      rows.push_back({x.what, x.good ? "yes" : "no", x.detail});
    }
    options.finish(options.json ? print_json(std::move(list)) : print_table(rows));
  });
}

} // namespace dsec
