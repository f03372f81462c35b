#pragma once

#include "backends/init/reaper_syscalls.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/// As execvp does it, without a libc.
namespace dsec::init::reaper {

inline constexpr char path_default[] =
  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

inline const char* path_of(char** env) {
  for (; *env; ++env) {
    const char* e = *env;
    if (e[0] == 'P' && e[1] == 'A' && e[2] == 'T' && e[3] == 'H' && e[4] == '=')
      return e + 5;
  }
  return path_default;
}

inline bool has_slash(const char* name) {
  for (; *name; ++name)
    if (*name == '/')
      return true;
  return false;
}

/// execve, which says "no such file" as well of one whose interpreter is missing (its first line's
/// or its dynamic linker); that is ELIBACC here.
inline long execute_file(const char* file, char** argv, char** env) {
  const long answer = call(SYS_execve, address(file), address(argv), address(env));
  if (answer == -ENOENT && call(SYS_faccessat, AT_FDCWD, address(file), F_OK) == 0)
    return -ELIBACC;
  return answer;
}

/// As execvp: a directory without the file is passed over, one that forbids it is remembered.
inline long execute(const char* name, char** argv, char** env) {
  if (!*name)
    return -ENOENT;
  if (has_slash(name))
    return execute_file(name, argv, env);
  static char candidate[4096];
  long best = -ENOENT;
  const char* path = path_of(env);
  for (;;) {
    std::size_t n = 0;
    bool fits = true;
    auto append = [&](char c) {
      if (n + 1 < sizeof candidate)
        candidate[n++] = c;
      else
        fits = false;
    };
    while (*path && *path != ':')
      append(*path++);
    if (n > 0)
      append('/');
    for (const char* c = name; *c; ++c)
      append(*c);
    candidate[n] = 0;
    if (fits) {
      const long answer = execute_file(candidate, argv, env);
      if (answer == -EACCES || (answer == -ELIBACC && best == -ENOENT))
        best = answer;
      else if (answer != -ELIBACC && answer != -ENOENT && answer != -ENOTDIR && answer != -ELOOP)
        return answer;
    }
    if (!*path)
      return best;
    ++path;
  }
}

} // namespace dsec::init::reaper
