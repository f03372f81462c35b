#pragma once

#include "bench/kernel_calls.hpp"

#include <sys/types.h>

namespace dsec::bench {

struct new_namespace {
  int flag;         ///< As CLONE_NEWNS.
  const char* kind; ///< Its name in /proc/self/ns, as "mnt".
  /// Runs inside, in a process of its own: system calls only. False: it failed.
  bool (*inside)() = nullptr;
  /// Runs in the caller while that process, `inside` behind it, is there.
  void (*outside)(pid_t) = nullptr;
};

/// A namespace that lives as long as the descriptor or whoever joins it. Throws if there is none.
fd make_namespace(const new_namespace& wanted);

} // namespace dsec::bench
