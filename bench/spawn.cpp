#include "bench/spawn.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sched.h>
#include <stdexcept>
#include <string_view>

namespace dsec::bench {

namespace {

constexpr std::size_t words_kept = 2000;

std::string read_all(const fd& file) {
  std::string text(words_kept, '\0');
  const auto got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

/// As exec wants them; they live as long as `argv`.
std::vector<char*> words_of(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const auto& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

/// This process's variables without those in `env`, then `env`.
std::vector<std::string>
environment_with(const std::vector<std::pair<std::string, std::string>>& env) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view own{*entry};
    if (std::none_of(env.begin(), env.end(),
                     [&](const auto& added) { return own.starts_with(added.first + "="); }))
      all.emplace_back(own);
  }
  for (const auto& [name, value] : env)
    all.push_back(name + "=" + value);
  return all;
}

} // namespace

void run_program(const std::vector<std::string>& argv, const fd* mount_namespace) {
  const auto words = words_of(argv);
  const fd nothing{checked(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open /dev/null")};
  const fd said{checked(::memfd_create("output", MFD_CLOEXEC), "memfd_create")};

  const pid_t child = ::vfork();
  if (child == 0) {
    if ((!mount_namespace || ::setns(mount_namespace->get(), CLONE_NEWNS) == 0)
        && ::dup2(nothing.get(), STDIN_FILENO) >= 0 && ::dup2(said.get(), STDOUT_FILENO) >= 0
        && ::dup2(said.get(), STDERR_FILENO) >= 0)
      ::execvp(words[0], words.data());
    ::_exit(127);
  }
  checked(child, "vfork");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      checked(-1, "wait for " + argv[0]);
  if (status == 0)
    return;
  throw std::runtime_error{argv[0] + " ended with "
                           + (WIFSIGNALED(status)
                                ? "signal " + std::to_string(WTERMSIG(status))
                                : "exit code " + std::to_string(WEXITSTATUS(status)))
                           + ": " + read_all(said)};
}

pid_t start_program(const child_program& what) {
  const auto variables = environment_with(what.env);
  const auto words = words_of(what.argv);
  const auto env = words_of(variables);
  const pid_t starter = ::getpid();
  // Until it is that program it has our memory, and so can say why it did not become it.
  volatile int failed = 0;
  const pid_t child = ::vfork();
  if (child == 0) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == starter
        && (what.out < 0 || ::dup2(what.out, STDOUT_FILENO) >= 0))
      ::execve(words[0], words.data(), env.data());
    failed = errno;
    ::_exit(127);
  }
  checked(child, "vfork");
  if (failed == 0)
    return child;
  ::waitpid(child, nullptr, 0);
  errno = failed;
  return checked(-1, "start " + what.argv[0]);
}

std::string sibling_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

} // namespace dsec::bench
