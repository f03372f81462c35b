#pragma once

#include "sdk/cli/client.hpp"
#include "sdk/cli/interrupts.hpp"
#include "sdk/cli/options.hpp"
#include "state/exec.hpp"

#include <cstdint>
#include <optional>

namespace dsec {

/// How `exec` and `run` end if not as the command does, by the conventions of `docker run` and
/// `timeout`.
inline constexpr int exit_late = 124;
inline constexpr int exit_not_invoked = 126;
inline constexpr int exit_no_program = 127;
inline constexpr int exit_killed = 137;

inline constexpr auto exit_codes_help =
  "Exit code: the command's own; 128 + N if signal N ended it; 124 its deadline passed;\n"
  "125 dsec itself failed; 126 the program cannot be executed, or the sandbox's process limit\n"
  "let no process start; 127 there is no such program; 137 killed: out of memory, cancelled,\n"
  "or its sandbox ended.";

inline constexpr auto signals_help =
  "Ctrl-C and SIGTERM go to the command's process group, as on a terminal; a second one kills\n"
  "its whole process tree, also if it is detached or a step; a third one ends dsec alone.";

/// The command's own code, or what stands for its outcome. Says on standard error what is not
/// plain.
int exit_code_of(const exec_result& x);

/// Of a command that did not run.
int exit_code_of(const error& x);

/// Runs a command with this process's standard streams and waits. The first signal that is heard
/// goes to its process group; the second cancels it and drops output that nobody takes (unavailable
/// if the runtime does not answer within 15 s); a third ends this program. With `streamed_input`,
/// standard input follows `spec.stdin_bytes`. Says on standard error if only a part of the output
/// was kept. When an output stream cannot be written, the command is cancelled unless it is
/// detached or a step, and that is the error; so is standard input that cannot be read, of any.
result<exec_result> run_command(client& at, interrupts& heard, wire::Sandbox::Client in,
                                const exec_spec& spec, bool streamed_input, bool detached);

/// Everything that standard input holds; exhausted beyond `bytes_max`.
result<std::string> read_input(std::size_t bytes_max);

} // namespace dsec
