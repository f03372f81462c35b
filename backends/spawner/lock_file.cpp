#include "backends/spawner/lock_file.hpp"

#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>

namespace dsec::spawner {

descriptor take_lock(int run_dir, const std::string& name, const lock_content& content) {
  descriptor lock{::openat(run_dir, (name + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) < 0)
    lock.reset();
  if (int number = lock ? write_lock(lock.get(), content) : 0; number != 0) {
    lock.reset();
    errno = number;
  }
  return lock;
}

int rename_lock(int run_dir, const std::string& from, const std::string& to) {
  auto done = ::renameat(run_dir, (from + ".lock").c_str(), run_dir, (to + ".lock").c_str());
  return done < 0 ? errno : 0;
}

int write_lock(int lock, const lock_content& content) {
  // One write of a fixed size: a reader sees the old text or the new one.
  char text[64];
  int size = std::snprintf(text, sizeof text, "slot %5u pid %10d %s\n", content.slot,
                           static_cast<int>(content.pid), content.live ? "live    " : "building");
  auto written = ::pwrite(lock, text, static_cast<std::size_t>(size), 0);
  return written == size ? 0 : written < 0 ? errno : ENOSPC;
}

std::optional<lock_content> read_lock(int run_dir, const std::string& name) {
  descriptor lock{::openat(run_dir, (name + ".lock").c_str(), O_RDONLY | O_CLOEXEC)};
  char text[65] = {};
  if (!lock || ::read(lock.get(), text, sizeof text - 1) <= 0)
    return std::nullopt;
  unsigned slot = 0;
  int pid = 0;
  char phase[16] = {};
  if (std::sscanf(text, "slot %u pid %d %15s", &slot, &pid, phase) != 3)
    return std::nullopt;
  return lock_content{slot, pid, std::string{phase} == "live"};
}

bool is_locked(int run_dir, const std::string& name) {
  descriptor lock{::openat(run_dir, (name + ".lock").c_str(), O_RDONLY | O_CLOEXEC)};
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

} // namespace dsec::spawner
