#include "sdk/cli/options.hpp"
#include "sdk/embed/runtime.hpp"

#include <csignal>

namespace dsec {

namespace {

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
  fmt::print("dsec: ready, serving {}\n", (options.state_dir / "dsec.sock").string());
  std::fflush(stdout);
  int number = 0;
  ::sigwait(&ends, &number);
}

} // namespace

void add_serve_command(CLI::App& app, cli_options& options) {
  auto* command =
    app.add_subcommand("serve", "Run a runtime in the foreground until SIGTERM or SIGINT");
  auto wanted = std::make_shared<runtime_options>();
  command->add_option("--workers", wanted->workers, "Actor threads; 0: as many as cores");
  command->add_option("--capacity", wanted->capacity, "Sandboxes at once")->capture_default_str();
  command->add_option("--warm", wanted->warm, "Sandboxes kept prepared")->capture_default_str();
  command->add_option("--spawner", wanted->spawner, "The dsec-spawner program");
  command->callback([&options, wanted] { serve(options, *wanted); });
}

} // namespace dsec
