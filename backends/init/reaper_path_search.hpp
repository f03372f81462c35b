#pragma once

#include "backends/init/reaper_syscalls.hpp"

#include <errno.h>

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

/// As execvp: a directory without the file is passed over, one that forbids it is remembered.
inline long execute(const char* name, char** argv, char** env) {
  if (!*name)
    return -ENOENT;
  if (has_slash(name))
    return call(SYS_execve, address(name), address(argv), address(env));
  static char candidate[4096];
  bool forbidden = false;
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
      long answer = call(SYS_execve, address(candidate), address(argv), address(env));
      if (answer == -EACCES)
        forbidden = true;
      else if (answer != -ENOENT && answer != -ENOTDIR && answer != -ELOOP)
        return answer;
    }
    if (!*path)
      return forbidden ? -EACCES : -ENOENT;
    ++path;
  }
}

} // namespace dsec::init::reaper
