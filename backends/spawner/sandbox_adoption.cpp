#include "backends/spawner/lock_file.hpp"
#include "backends/spawner/sandboxes.hpp"

#include <sys/syscall.h>

#include <dirent.h>
#include <set>
#include <unistd.h>

namespace dsec::spawner {

namespace {

/// Sandboxes, blank ones included, that have a file in the run directory.
std::set<std::string> names_in(const std::string& run_dir) {
  std::set<std::string> names;
  DIR* directory = ::opendir(run_dir.c_str());
  if (!directory)
    return names;
  while (auto* entry = ::readdir(directory)) {
    std::string_view file{entry->d_name};
    for (std::string_view ending : {".lock", ".sock"}) {
      if (!file.ends_with(ending))
        continue;
      auto name = file.substr(0, file.size() - ending.size());
      if (valid_sandbox_id(name) || slot_of(name))
        names.emplace(name);
    }
  }
  ::closedir(directory);
  return names;
}

} // namespace

void sandboxes::adopt() {
  for (auto& name : names_in(on_.where.run_dir()))
    adopt_one(name, std::nullopt);
  std::set<std::uint32_t> left;
  for (auto slot : on_.groups.slots())
    left.insert(slot);
  for (auto slot : on_.disk.slots())
    left.insert(slot);
  for (auto& [name, s] : by_id_)
    if (s.slot)
      left.erase(*s.slot);
  for (auto slot : left)
    adopt_one(slot_name(slot), slot);
}

void sandboxes::adopt_one(const std::string& name, std::optional<std::uint32_t> slot) {
  auto& s = insert(name);
  auto content = read_lock(on_.run_dir.get(), name);
  s.slot = content ? content->slot : slot;
  if (s.slot)
    slots_.mark(*s.slot);
  if (content && content->live) {
    // The descriptor first: what holds the lock after that is what it stands for.
    s.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, content->pid, 0)));
    if (s.pidfd && is_locked(on_.run_dir.get(), name)
        && on_.groups.holds(content->slot, content->pid)) {
      s.is = phase::live;
      s.pid = content->pid;
      loop_.add(s.pidfd.get(), source::pidfd, s.serial);
      log_.line("sandbox.adopted", name + " pid " + std::to_string(s.pid));
      return;
    }
  }
  // Dead, or half built: whoever asked for it has lost its connection and was never answered.
  log_.line("sandbox.leftover", name);
  kill(s, std::nullopt);
}

} // namespace dsec::spawner
