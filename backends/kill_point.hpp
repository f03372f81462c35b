#pragma once

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace dsec {

/// Roles of the processes that a crash test can end.
enum class crash_role { node, spawner, init };

/// Debug hook of the crash tests, called before and after every journal write and every effect.
/// With DSEC_KILL_AT="<role>:<n>:<marker>" in the environment (role: node, spawner or init), the
/// n-th call in a process of that role creates the file `marker` and ends the process with SIGKILL,
/// as a crash would. Whoever finds `marker` there already lives on, so one setting kills one
/// process once. Unset: one branch.
inline void kill_point(crash_role role) {
  struct setting {
    crash_role role = crash_role::node;
    unsigned long at = 0;
    const char* marker = "";

    setting() {
      const char* text = std::getenv("DSEC_KILL_AT");
      if (!text)
        return;
      for (auto [name, value] :
           {std::pair{"node:", crash_role::node}, std::pair{"spawner:", crash_role::spawner},
            std::pair{"init:", crash_role::init}}) {
        if (std::strncmp(text, name, std::strlen(name)) != 0)
          continue;
        char* end = nullptr;
        role = value;
        at = std::strtoul(text + std::strlen(name), &end, 10);
        marker = *end == ':' ? end + 1 : "";
      }
    }
  };

  static const setting wanted;
  static std::atomic<unsigned long> reached{0};
  if (wanted.at == 0 || wanted.role != role)
    return;
  if (reached.fetch_add(1) + 1 != wanted.at)
    return;
  if (*wanted.marker && ::open(wanted.marker, O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0)
    return;
  ::kill(::getpid(), SIGKILL);
}

} // namespace dsec
