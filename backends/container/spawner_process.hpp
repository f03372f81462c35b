#pragma once

#include "backends/container/io_loop.hpp"
#include "state/error.hpp"

#include <filesystem>
#include <functional>

namespace dsec {

struct spawner_options {
  std::filesystem::path data_dir;
  std::filesystem::path run_dir;
  /// The program; empty: dsec-spawner next to the running program, then in PATH.
  std::filesystem::path program;
};

/// The program that these options mean.
std::filesystem::path spawner_program(const spawner_options& options);

/// Starts dsec-spawner, which daemonises itself and leaves once its socket listens. Inherits
/// nothing of the caller but its environment: no descriptor, no signal mask, no handler. Loop only.
/// The answer is unavailable with what the program wrote to its standard error if it did not come
/// up within 120 s. Drop the promise to stop waiting.
kj::Promise<result<void>> start_spawner(io_loop& loop, const spawner_options& options);

} // namespace dsec
