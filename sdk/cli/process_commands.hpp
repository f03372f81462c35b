#pragma once

#include "sdk/cli/client.hpp"
#include "sdk/cli/options.hpp"
#include "state/process.hpp"

#include <string>

namespace dsec {

/// How `exec -t` and `exec -d` want their command.
struct process_options {
  bool terminal = false;
  bool background = false;
  bool input = false;
  std::string name;
};

/// Starts a process. In the background: prints its id. Else shows it until it ends or the user
/// detaches, and sets the exit code.
result<void> run_process(cli_options& options, client& at, wire::Sandbox::Client in, exec_spec spec,
                         const process_options& how);

/// One line for each process of a sandbox, or one JSON array.
result<void> print_processes(client& at, const std::string& sandbox, bool json);

/// `attach`, `kill` and `rm`.
void add_process_commands(CLI::App& app, cli_options& options);

} // namespace dsec
