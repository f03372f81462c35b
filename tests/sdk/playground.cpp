#include "tests/sdk/playground.hpp"

#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_link.hpp"
#include "backends/rootfs/layer_store.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <unistd.h>

extern char** environ;

namespace dsec::test {

namespace fs = std::filesystem;

namespace {

constexpr auto busybox = "/bin/busybox";

std::unique_ptr<playground> the_machine;

template <class T>
T expect(result<T> x) {
  if (!x)
    throw std::runtime_error{x.error().message};
  return std::move(*x);
}

layer_digest import_busybox(const fs::path& root, const fs::path& data_dir) {
  auto tree = root / "tree";
  for (auto folder : {"bin", "etc", "root", "tmp", "proc", "sys", "dev", "room"})
    fs::create_directories(tree / folder);
  fs::permissions(tree / "tmp", fs::perms::all | fs::perms::sticky_bit);
  fs::copy_file(busybox, tree / "bin/busybox");
  auto applets = run_program({busybox, "--list"});
  std::string name;
  for (char c : applets.out) {
    if (c != '\n') {
      name += c;
      continue;
    }
    if (!fs::exists(tree / "bin" / name))
      fs::create_symlink("busybox", tree / "bin" / name);
    name.clear();
  }
  std::ofstream{tree / "etc/passwd"}
    << "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/tmp:/bin/sh\n";
  std::ofstream{tree / "etc/group"} << "root:x:0:\nagent:x:1000:\n";
  layer_store store{data_dir / "store"};
  auto digest = expect(store.import_directory(tree, "test"));
  if (auto named = store.name("busybox", digest); !named)
    throw std::runtime_error{named.error().message};
  return digest;
}

pid_t launch(const std::vector<std::string>& argv, const std::vector<std::string>& variables,
             int in, int out, int err) {
  std::vector<char*> words;
  for (const auto& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> env;
  for (char** each = environ; *each; ++each)
    env.push_back(*each);
  for (const auto& each : variables)
    env.push_back(const_cast<char*>(each.c_str()));
  env.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (auto [from, to] : {std::pair{in, 0}, {out, 1}, {err, 2}})
    if (from >= 0)
      posix_spawn_file_actions_adddup2(&files, from, to);
  pid_t pid = -1;
  int failed = ::posix_spawn(&pid, argv[0].c_str(), &files, nullptr, words.data(), env.data());
  posix_spawn_file_actions_destroy(&files);
  if (failed)
    throw std::runtime_error{fmt::format("start {}: {}", argv[0], ::strerror(failed))};
  return pid;
}

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

std::optional<std::string> why_not() {
  if (::geteuid() != 0)
    return "not root";
  if (!fs::exists(busybox))
    return "no static busybox in /bin";
  return std::nullopt;
}

playground& machine() {
  if (!the_machine)
    the_machine = std::make_unique<playground>();
  return *the_machine;
}

void end_machine() {
  the_machine.reset();
}

playground::playground() {
  char pattern[] = "/tmp/dsec-sdk-XXXXXX";
  root = ::mkdtemp(pattern);
  data_dir = root / "data";
  run_dir = root / "run";
  programs = fs::read_symlink("/proc/self/exe").parent_path();
  fs::create_directories(data_dir);
  layer = import_busybox(root, data_dir);
  auto started = run_program({programs / "dsec-spawner", "--data-dir", data_dir, "--run-dir",
                              run_dir, "--scratch-bytes", "2147483648", "--swap-bytes", "536870912",
                              "--warm", "4", "--idle-exit", "60"});
  if (started.code != 0)
    throw std::runtime_error{fmt::format("dsec-spawner: {}: {}", started.code, started.err)};
}

playground::~playground() {
  io_loop loop;
  std::unique_ptr<spawner_link> link;
  std::promise<void> gone;
  // Whatever a failed test left is removed first: shutdown refuses while sandboxes live.
  auto left = std::make_shared<std::size_t>(1);
  auto removed = [&, left](result<void>) {
    if (--*left == 0)
      link->shutdown([&](result<void>) { gone.set_value(); });
  };
  loop.run([&] {
    link = std::make_unique<spawner_link>(loop, spawner_options{data_dir, run_dir, {}});
    link->list([&, left, removed](result<std::vector<live_sandbox>> all) {
      if (all)
        for (const auto& each : *all) {
          ++*left;
          link->destroy(each.id, removed);
        }
      removed({});
    });
  });
  gone.get_future().wait();
  loop.run([&] { link.reset(); });
  std::error_code failed;
  fs::remove_all(root, failed);
}

fs::path playground::new_state() {
  return root / fmt::format("state{}", ++states_);
}

runtime_options playground::options() const {
  runtime_options x;
  x.data_dir = data_dir;
  x.run_dir = run_dir;
  x.workers = 2;
  x.warm = 0;
  return x;
}

dsec::environment playground::environment() const {
  dsec::environment x;
  x.layers = {layer};
  x.limits.memory_bytes = 128 << 20;
  x.limits.disk_bytes = 64 << 20;
  return x;
}

std::vector<std::string>
playground::dsec(const fs::path& state, const std::vector<std::string>& arguments) const {
  std::vector<std::string> all{programs / "dsec", "--state-dir", state,  "--data-dir",
                               data_dir,          "--run-dir",   run_dir};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::unique_ptr<runtime> playground::open(const fs::path& state) const {
  return expect(runtime::open(state, options()));
}

sandbox
playground::one_sandbox(runtime& at, const dsec::environment& from, const std::string& job) {
  auto owner =
    expect(at.open_job(job, {{std::chrono::milliseconds{0}, std::chrono::milliseconds{0}}}).get());
  return expect(owner.create({from, {}}).get());
}

finished run_program(const std::vector<std::string>& argv, const std::string& input) {
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) < 0 || ::pipe2(out, O_CLOEXEC) < 0 || ::pipe2(err, O_CLOEXEC) < 0)
    throw std::runtime_error{"pipe"};
  auto pid = launch(argv, {}, in[0], out[1], err[1]);
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  finished x;
  std::size_t written = 0;
  pollfd ends[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}, {in[1], POLLOUT, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (ends[2].fd >= 0 && written == input.size()) {
      ::close(ends[2].fd);
      ends[2].fd = -1;
    }
    ::poll(ends, 3, -1);
    for (int i = 0; i < 2; ++i) {
      if (!(ends[i].revents & (POLLIN | POLLHUP)))
        continue;
      char buffer[65536];
      auto n = ::read(ends[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        (i == 0 ? x.out : x.err).append(buffer, n);
      } else {
        ::close(ends[i].fd);
        ends[i].fd = -1;
      }
    }
    if (ends[2].fd >= 0 && (ends[2].revents & (POLLOUT | POLLERR))) {
      auto n = ::write(ends[2].fd, input.data() + written,
                       std::min<std::size_t>(input.size() - written, 4096));
      written = n < 0 ? input.size() : written + n;
    }
  }
  if (ends[2].fd >= 0)
    ::close(ends[2].fd);
  int status = 0;
  ::waitpid(pid, &status, 0);
  x.code = code_of(status);
  return x;
}

child_process::child_process(const std::vector<std::string>& argv,
                             const std::vector<std::string>& variables) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) < 0)
    throw std::runtime_error{"pipe"};
  pid_ = launch(argv, variables, -1, out[1], -1);
  ::close(out[1]);
  out_ = out[0];
}

child_process::~child_process() {
  if (pid_ > 0) {
    kill(SIGKILL);
    wait();
  }
  ::close(out_);
}

std::optional<std::string> child_process::line() {
  for (;;) {
    if (auto end = rest_.find('\n'); end != std::string::npos) {
      auto text = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return text;
    }
    char buffer[4096];
    auto n = ::read(out_, buffer, sizeof buffer);
    if (n <= 0)
      return std::nullopt;
    rest_.append(buffer, n);
  }
}

void child_process::kill(int number) const {
  ::kill(pid_, number);
}

int child_process::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return code_of(status);
}

} // namespace dsec::test
