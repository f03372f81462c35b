#include "backends/container/spawner_process.hpp"

#include <fmt/format.h>
#include <kj/io.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sstream>
#include <unistd.h>

extern char** environ;

namespace dsec {

std::filesystem::path spawner_program(const spawner_options& options) {
  if (!options.program.empty())
    return options.program;
  std::error_code none;
  auto self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (auto beside = self.parent_path() / "dsec-spawner"; std::filesystem::exists(beside, none))
    return beside;
  const char* path = std::getenv("PATH");
  std::istringstream folders{path ? path : ""};
  for (std::string folder; std::getline(folders, folder, ':');)
    if (auto found = std::filesystem::path{folder} / "dsec-spawner";
        !folder.empty() && std::filesystem::exists(found, none))
      return found;
  return "dsec-spawner";
}

namespace {

/// A child that has not been waited for.
struct child {
  pid_t pid = -1;
  kj::AutoCloseFd pidfd;
  kj::AutoCloseFd said; ///< Its standard error.
  std::string program;

  std::string words() const {
    char buffer[2048];
    auto n = ::pread(said, buffer, sizeof buffer, 0);
    std::string text(buffer, n > 0 ? n : 0);
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    return text;
  }

  result<void> finish() {
    int status = 0;
    // A host that waits for all of its children may have been faster; then the socket will tell.
    if (::waitpid(pid, &status, WNOHANG) != pid)
      return {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      return {};
    auto how = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                   : fmt::format("exit code {}", WEXITSTATUS(status));
    return error{errc::unavailable, fmt::format("start {}: {}: {}", program, how, words())};
  }
};

result<child> launch(const spawner_options& options) {
  auto program = spawner_program(options).string();
  child x;
  x.program = program;
  x.said = kj::AutoCloseFd{::memfd_create("dsec-spawner-stderr", MFD_CLOEXEC)};
  std::string data = options.data_dir.string();
  std::string run = options.run_dir.string();
  const char* argv[] = {program.c_str(), "--data-dir",  data.c_str(), "--run-dir",
                        run.c_str(),     "--idle-exit", "60",         nullptr};

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, x.said, 2);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int number =
    ::posix_spawn(&x.pid, program.c_str(), &files, &attributes, const_cast<char**>(argv), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (number != 0)
    return error{errc::unavailable, fmt::format("start {}: {}", program, ::strerror(number))};
  int pidfd = ::syscall(SYS_pidfd_open, x.pid, 0);
  if (pidfd < 0)
    return error{errc::unavailable, fmt::format("watch {}: {}", program, ::strerror(errno))};
  x.pidfd = kj::AutoCloseFd{pidfd};
  return x;
}

} // namespace

kj::Promise<result<void>> start_spawner(io_loop& loop, const spawner_options& options) {
  auto started = launch(options);
  if (!started)
    return result<void>{started.error()};
  auto held = kj::heap<child>(kj::mv(*started));
  auto& c = *held;
  auto ended = kj::heap<kj::UnixEventPort::FdObserver>(loop.port(), c.pidfd,
                                                       kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto exit = ended->whenBecomesReadable().then([&c] { return c.finish(); });
  auto late = loop.timer().afterDelay(120 * kj::SECONDS).then([&c]() -> result<void> {
    ::kill(c.pid, SIGKILL);
    ::waitpid(c.pid, nullptr, 0);
    return error{errc::unavailable,
                 fmt::format("start {}: not ready after 120 s: {}", c.program, c.words())};
  });
  // The observer goes before the descriptor that it observes.
  return exit.exclusiveJoin(kj::mv(late)).attach(kj::mv(ended)).attach(kj::mv(held));
}

} // namespace dsec
