#pragma once

#include "sdk/cli/client.hpp"
#include "sdk/cli/standard_output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <functional>

namespace dsec {

/// dsec's own failure, of whatever command.
inline constexpr int exit_failure = 125;

/// What every command shares.
struct cli_options {
  std::filesystem::path state_dir = "/var/lib/dsec/state";
  std::filesystem::path data_dir = "/var/lib/dsec";
  std::filesystem::path run_dir = "/run/dsec";
  bool json = false;
  int exit_code = 0;

  void fail(const error& e, int code = exit_failure) {
    complain(e.message);
    exit_code = code;
  }

  /// What a command without a client comes to.
  void finish(const result<void>& done) {
    if (!done)
      fail(done.error());
  }

  /// Connects and calls `use`; says why if it cannot.
  void with_client(const std::function<result<void>(client&)>& use) {
    auto opened = connect(state_dir);
    if (!opened)
      return fail(opened.error());
    if (auto done = use(**opened); !done)
      fail(done.error());
  }
};

void add_serve_command(CLI::App& app, cli_options& options);
void add_exec_commands(CLI::App& app, cli_options& options);
void add_sandbox_commands(CLI::App& app, cli_options& options);
void add_copy_command(CLI::App& app, cli_options& options);
void add_clocks_command(CLI::App& app, cli_options& options);
void add_stats_command(CLI::App& app, cli_options& options);
void add_events_command(CLI::App& app, cli_options& options);
void add_log_command(CLI::App& app, cli_options& options);
void add_job_commands(CLI::App& app, cli_options& options);
void add_doctor_command(CLI::App& app, cli_options& options);

} // namespace dsec
