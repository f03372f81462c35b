#include "bench/demo/child.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <signal.h>
#include <spawn.h>
#include <thread>
#include <unistd.h>

namespace dsec::demo {

namespace {

using namespace std::chrono_literals;

/// The environment of the child: ours without the names in `env`, then `env`.
std::vector<std::string>
environment_with(const std::vector<std::pair<std::string, std::string>>& env) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    std::string text{*entry};
    bool replaced = false;
    for (const auto& [name, value] : env)
      replaced = replaced || text.rfind(name + "=", 0) == 0;
    if (!replaced)
      all.push_back(std::move(text));
  }
  for (const auto& [name, value] : env)
    all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> p;
  for (auto& text : texts)
    p.push_back(text.data());
  p.push_back(nullptr);
  return p;
}

} // namespace

result<child> child::start(const std::vector<std::string>& argv,
                           const std::vector<std::pair<std::string, std::string>>& env) {
  auto arguments = argv;
  auto variables = environment_with(env);
  pid_t pid = -1;
  int number = ::posix_spawn(&pid, argv[0].c_str(), nullptr, nullptr, pointers(arguments).data(),
                             pointers(variables).data());
  if (number != 0)
    return errno_error(number, "starting " + argv[0]);
  return child{pid};
}

child& child::operator=(child&& other) noexcept {
  crash();
  pid_ = std::exchange(other.pid_, -1);
  status_ = other.status_;
  return *this;
}

child::~child() {
  crash();
}

std::optional<int> child::ended() {
  if (pid_ < 0 || status_)
    return status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

std::optional<int> child::wait(std::chrono::milliseconds patience) {
  auto until = std::chrono::steady_clock::now() + patience;
  while (!ended() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(10ms);
  return status_;
}

void child::crash() {
  if (pid_ < 0 || ended())
    return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR)
    ;
  status_ = 128 + SIGKILL;
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

} // namespace dsec::demo
