#include "backends/spawner/journal.hpp"
#include "backends/spawner/machine.hpp"
#include "backends/spawner/options.hpp"
#include "backends/spawner/service.hpp"

#include <CLI/CLI.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace {

using namespace dsec::spawner;

/// Nothing of whoever started us may shape what we start.
void forget_caller() {
  ::close_range(3, ~0u, 0);
  ::umask(022);
  ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  for (int number = 1; number < NSIG; ++number)
    ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  (void)!::chdir("/");
}

/// Runs the service. `ready` is told an empty text once the socket listens, else what failed.
template <class Ready>
int serve(const options& chosen, Ready ready) {
  auto on = machine::open(chosen);
  if (!on) {
    ready(on.error().message);
    return 1;
  }
  journal to{(*on)->where.run("spawner.log"), chosen.foreground};
  service serving{**on, chosen, to};
  if (auto started = serving.start(); !started) {
    ready(started.error().message);
    return 1;
  }
  if (!(*on)->swap_why_not.empty())
    to.line("swap.none", (*on)->swap_why_not);
  to.line("spawner.ready", "pid " + std::to_string(::getpid()) + " version " + program_version());
  ready("");
  auto ended = serving.run();
  if (!ended)
    to.line("spawner.failed", ended.error().message);
  return ended ? 0 : 1;
}

/// The caller's process waits until the service is ready, and says so by its exit code.
int daemonise(const options& chosen) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) {
    std::perror("dsec-spawner: pipe");
    return 1;
  }
  auto pid = ::fork();
  if (pid < 0) {
    std::perror("dsec-spawner: fork");
    return 1;
  }
  if (pid == 0) {
    ::close(pipe[0]);
    ::setsid();
    int null = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2})
      ::dup2(null, fd);
    if (null > 2)
      ::close(null);
    return serve(chosen, [end = pipe[1]](const std::string& failure) {
      (void)!::write(end, failure.c_str(), failure.size() + 1);
      ::close(end);
    });
  }
  ::close(pipe[1]);
  std::string told(4096, '\0');
  auto size = ::read(pipe[0], told.data(), told.size());
  if (size == 1)
    return 0;
  if (size > 1)
    std::fprintf(stderr, "dsec-spawner: %s\n", told.c_str());
  else
    std::fprintf(stderr, "dsec-spawner: it died before it was ready\n");
  return 1;
}

} // namespace

int main(int count, char** arguments) {
  options chosen;
  CLI::App app{"Builds sandboxes for dsec on this machine; runs as root."};
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", [] { return program_version(); });
  app.add_option("--data-dir", chosen.data_dir, "Layers, scratch, swap")->capture_default_str();
  app.add_option("--run-dir", chosen.run_dir, "Sockets, locks, mounts, log")->capture_default_str();
  app.add_option("--group", chosen.group, "Group whose members may use the socket, beside root");
  app.add_option("--swap-bytes", chosen.swap_bytes, "Size of the swap file; 0: none")
    ->check(CLI::NonNegativeNumber);
  app.add_option("--scratch-bytes", chosen.scratch_bytes, "Size of the scratch filesystem")
    ->check(CLI::NonNegativeNumber);
  app.add_option("--warm", chosen.warm, "Network namespaces kept ready")
    ->capture_default_str()
    ->check(CLI::NonNegativeNumber);
  app.add_option("--blanks", chosen.blanks, "Sandboxes built ahead")
    ->capture_default_str()
    ->check(CLI::NonNegativeNumber);
  app
    .add_option("--idle-exit", chosen.idle_exit_s,
                "Ends after so many seconds without a connection and a sandbox; 0: never")
    ->check(CLI::NonNegativeNumber);
  app.add_flag("--foreground", chosen.foreground,
               "Stays in the foreground and logs to standard error");
  app.add_flag("--trace", chosen.trace, "Logs how long every stage of a create took");
  CLI11_PARSE(app, count, arguments);
  if (::geteuid() != 0) {
    std::fprintf(stderr, "dsec-spawner: it must run as root\n");
    return 1;
  }
  for (auto [name, path] : {std::pair{"run-dir", &chosen.run_dir}, {"data-dir", &chosen.data_dir}})
    if (path->empty() || path->front() != '/') {
      std::fprintf(stderr, "dsec-spawner: %s: '%s' is not an absolute path\n", name, path->c_str());
      return 1;
    }
  forget_caller();
  if (!chosen.foreground)
    return daemonise(chosen);
  return serve(chosen, [](const std::string& failure) {
    if (!failure.empty())
      std::fprintf(stderr, "dsec-spawner: %s\n", failure.c_str());
  });
}
