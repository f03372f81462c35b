#include "sdk/cli/numbers.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/embed/runtime.hpp"

#include <csignal>

namespace dsec {

namespace {

/// More than any machine can hold; numbers beyond are typing errors.
constexpr std::uint64_t capacity_max = 1'000'000;

void serve(cli_options& options, runtime_options wanted) {
  // Blocked before any thread exists, so that they reach sigwait alone.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  wanted.data_dir = options.data_dir;
  wanted.run_dir = options.run_dir;
  auto opened = runtime::open(options.state_dir, std::move(wanted));
  if (!opened)
    return options.fail(opened.error());
  if (auto told = print("dsec: ready, serving {}\n", (options.state_dir / "dsec.sock").string());
      !told)
    return options.fail(told.error());
  int number = 0;
  ::sigwait(&ends, &number);
}

} // namespace

void add_serve_command(CLI::App& app, cli_options& options) {
  auto* command =
    app.add_subcommand("serve", "Run a runtime in the foreground until SIGTERM or SIGINT");
  auto wanted = std::make_shared<runtime_options>();
  add_whole(*command, "--workers", wanted->workers, "Actor threads; 0: as many as cores", 1024);
  add_whole(*command, "--capacity", wanted->capacity, "Sandboxes at once", capacity_max, 1)
    ->default_str(std::to_string(wanted->capacity));
  add_whole(*command, "--warm", wanted->warm, "Sandboxes kept prepared", capacity_max)
    ->default_str(std::to_string(wanted->warm));
  command->add_option("--spawner", wanted->spawner, "The dsec-spawner program");
  command->callback([&options, wanted] { serve(options, *wanted); });
}

} // namespace dsec
