#pragma once

#include "bench/kernel_calls.hpp"

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace dsec::bench {

/// Runs a program (looked up in PATH) with empty input and waits for it. What it says is kept back;
/// unless it exits 0 that is thrown, as std::runtime_error. Runs in `mount_namespace`, if there is
/// one. Costs the same however large this process is.
void run_program(const std::vector<std::string>& argv, const fd* mount_namespace = nullptr);

struct child_program {
  std::vector<std::string> argv; ///< argv[0] is its path.
  /// Added to this process's own variables, overriding them.
  std::vector<std::pair<std::string, std::string>> env = {};
  int out = -1; ///< Its standard output; -1: this process's.
};

/// Starts a program that is killed when the thread that started it ends, however that comes about.
/// What one starts, one waits for. Throws std::system_error.
pid_t start_program(const child_program& what);

/// The path of a program that stands next to this one.
std::string sibling_program(const std::string& name);

} // namespace dsec::bench
