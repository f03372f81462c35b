#include "bench/limit/limit_process.hpp"

#include "bench/spawn.hpp"

#include <sys/wait.h>

#include <spawn.h>
#include <stdexcept>

namespace dsec::bench {

namespace {

std::pair<fd, fd> open_pipe() {
  int ends[2];
  checked(::pipe2(ends, O_CLOEXEC), "pipe");
  return {fd{ends[0]}, fd{ends[1]}};
}

} // namespace

limit_process::limit_process(const std::filesystem::path& scratch, const sandbox_limits& limits,
                             const std::vector<std::string>& layers) {
  std::vector<std::string> argv{sibling_program("dsec-bench-limit"),
                                scratch,
                                "/bin/true",
                                std::to_string(limits.memory_bytes),
                                std::to_string(limits.processes),
                                std::to_string(limits.cpu_milli),
                                std::to_string(limits.disk_bytes)};
  argv.insert(argv.end(), layers.begin(), layers.end());
  std::vector<char*> words;
  for (auto& word : argv)
    words.push_back(word.data());
  words.push_back(nullptr);

  auto [input, ask] = open_pipe();
  auto [answers, output] = open_pipe();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  errno = ::posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  checked(errno == 0 ? 0 : -1, "start " + argv[0]);
  ask_ = std::move(ask);
  answers_ = std::move(answers);
}

limit_process::~limit_process() {
  ask_.reset();
  ::waitpid(pid_, nullptr, 0);
}

double limit_process::run() {
  checked(::write(ask_.get(), "x", 1), "ask dsec-bench-limit");
  char line[64];
  std::string text;
  while (!text.ends_with('\n')) {
    const auto got = ::read(answers_.get(), line, sizeof line);
    if (got == 0 || (got < 0 && errno != EINTR))
      throw std::runtime_error{"dsec-bench-limit ended"};
    if (got > 0)
      text.append(line, static_cast<std::size_t>(got));
  }
  return std::stod(text);
}

} // namespace dsec::bench
