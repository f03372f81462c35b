#pragma once

#include "sdk/cli/client.hpp"
#include "state/exec.hpp"

#include <cstdint>
#include <optional>

namespace dsec {

/// How `exec` and `run` end: the command's own code; 128 + n when a signal ended it; 124 when its
/// deadline passed; 137 when memory ran out; 125 when it is not the command's doing. Says on
/// standard error what is not plain.
int exit_code_of(const exec_result& x);

/// Runs a command with this process's standard streams, passes SIGINT and SIGTERM on to it, and
/// waits. With `streamed_input`, standard input follows `spec.stdin_bytes`.
result<exec_result> run_command(client& at, wire::Sandbox::Client in, const exec_spec& spec,
                                bool streamed_input, bool detached);

/// Everything that standard input holds; exhausted beyond `bytes_max`.
result<std::string> read_input(std::size_t bytes_max);

} // namespace dsec
