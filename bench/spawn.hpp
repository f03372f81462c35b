#pragma once

#include "bench/kernel_calls.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace dsec::bench {

/// Runs a program (looked up in PATH) with empty input and waits for it. What it says is kept back;
/// unless it exits 0 that is thrown, as std::runtime_error. Runs in `mount_namespace`, if there is
/// one. Costs the same however large this process is.
void run_program(const std::vector<std::string>& argv, const fd* mount_namespace = nullptr);

/// Starts a program, by path, with this process's descriptors. What one starts, one waits for.
pid_t start_program(const std::vector<std::string>& argv);

/// The path of a program that stands next to this one.
std::string sibling_program(const std::string& name);

} // namespace dsec::bench
