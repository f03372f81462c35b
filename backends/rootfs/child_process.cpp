#include "backends/rootfs/child_process.hpp"

#include "backends/rootfs/file_descriptor.hpp"

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace dsec {

namespace {

constexpr off_t log_tail_bytes = 2000;
constexpr int failed_before_exec = 127;

/// The end of what a log holds from `begin` on.
std::string tail(int log, off_t begin) {
  auto size = ::lseek(log, 0, SEEK_END);
  auto from = std::max(begin, size - log_tail_bytes);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  auto got = ::pread(log, text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

std::vector<std::string> environment_of(const child_command& command) {
  std::vector<std::string> out;
  for (char** x = environ; *x; ++x) {
    std::string_view own = *x;
    bool overridden = std::any_of(command.env.begin(), command.env.end(),
                                  [&](const auto& y) { return own.starts_with(y.first + "="); });
    if (!overridden)
      out.emplace_back(own);
  }
  for (const auto& [name, value] : command.env)
    out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& x : strings)
    out.push_back(x.data());
  out.push_back(nullptr);
  return out;
}

/// Between fork and exec: system calls only.
[[noreturn]] void
become(const char* program, char** argv, char** env, int log, int input, bool private_mounts) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool ok = ::dup2(input, 0) >= 0 && ::dup2(log, 1) >= 0 && ::dup2(log, 2) >= 0;
  if (ok && private_mounts)
    ok = ::unshare(CLONE_NEWNS) == 0
         && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (ok)
    ::execve(program, argv, env);
  const char* why = std::strerror(errno);
  [[maybe_unused]] auto ignored = ::write(2, why, std::strlen(why));
  ::_exit(failed_before_exec);
}

} // namespace

std::filesystem::path find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string folders = std::string{path ? path : ""} + ":/usr/sbin:/usr/bin:/sbin:/bin";
  for (std::size_t at = 0; at <= folders.size();) {
    auto end = std::min(folders.find(':', at), folders.size());
    auto candidate = std::filesystem::path{folders.substr(at, end - at)} / name;
    if (candidate.is_absolute() && ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
    at = end + 1;
  }
  return {};
}

result<void> run(const child_command& command) {
  auto what = fmt::format("run {}", command.argv.at(0));
  auto program = find_program(command.argv[0]);
  if (program.empty())
    return error{errc::unavailable, what + ": it is not installed"};
  file_descriptor log{::open(command.log.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  if (!log)
    return errno_error(errno, fmt::format("{}: open log {}", what, command.log.string()));
  auto log_begin = ::lseek(log.get(), 0, SEEK_END);
  file_descriptor input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (!input)
    return errno_error(errno, what + ": open /dev/null");

  auto argv = command.argv;
  auto env = environment_of(command);
  auto argv_pointers = pointers(argv);
  auto env_pointers = pointers(env);
  auto pid = ::fork();
  if (pid < 0)
    return errno_error(errno, what + ": fork");
  if (pid == 0)
    become(program.c_str(), argv_pointers.data(), env_pointers.data(), log.get(), input.get(),
           command.private_mounts);

  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return errno_error(errno, what + ": wait");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {};
  auto end = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                 : fmt::format("exit code {}", WEXITSTATUS(status));
  auto words = tail(log.get(), log_begin);
  return error{errc::unavailable,
               fmt::format("{}: {}{}{}", what, end, words.empty() ? "" : "\n", words)};
}

} // namespace dsec
