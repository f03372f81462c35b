#include "backends/rootfs/child_process.hpp"
#include "bench/demo/child.hpp"
#include "bench/demo/demo.hpp"
#include "bench/demo/prepare.hpp"
#include "bench/kernel_calls.hpp"
#include "bench/waits.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <mutex>
#include <random>
#include <signal.h>
#include <sstream>

namespace dsec::demo {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr unsigned steps = 6;
constexpr int attempts_max = 10;
constexpr auto ready_patience = 60s;

/// `dsec serve` in a process of its own, and the dsec command as its client. `ask` may be called in
/// another thread than the rest.
class served {
public:
  served(const train_options& options, fs::path program)
    : program_{std::move(program)},
      log_{options.state_dir.string() + ".serve.log"},
      common_{"--state-dir=" + options.state_dir.string() + ".served",
              "--data-dir=" + options.data_dir.string(), "--run-dir=" + options.run_dir.string()} {}

  /// Starts it and waits until it serves.
  bool start() {
    int ends[2];
    bench::checked(::pipe2(ends, O_CLOEXEC), "pipe");
    said_ = bench::fd{ends[0]};
    bench::fd says{ends[1]};
    auto server = child::start({.argv = command({"serve"}), .out = says.get()});
    if (!server)
      return false;
    server_ = std::move(*server);
    says.reset();
    // Its first and only line says that it serves; at its end there is nothing to read.
    char byte;
    bool up = bench::wait_readable(said_.get(), bench::within(ready_patience))
              && ::read(said_.get(), &byte, 1) == 1;
    tell(up);
    return up;
  }

  /// Kills it and starts it again, `moment` from now.
  bool crash_in(std::chrono::milliseconds moment) {
    server_->wait(bench::within(moment));
    tell(false);
    server_->crash();
    return start();
  }

  bool end() {
    ::kill(server_->pid(), SIGTERM);
    return server_->wait(bench::within(60s)) == 0;
  }

  /// What the command printed. Asked again, of a server that is up, until it succeeds: all that is
  /// asked here is idempotent.
  result<std::string> ask(const std::vector<std::string>& arguments) {
    result<void> done{error{}};
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
      fs::remove(log_);
      done = run({command(arguments), {}, log_});
      if (done) {
        std::ostringstream text;
        text << std::ifstream{log_}.rdbuf();
        return text.str();
      }
      std::unique_lock lock{mutex_};
      changed_.wait_for(lock, ready_patience, [this] { return up_; });
    }
    return done.error();
  }

private:
  std::vector<std::string> command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{program_.string()};
    argv.insert(argv.end(), common_.begin(), common_.end());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }

  void tell(bool up) {
    std::scoped_lock lock{mutex_};
    up_ = up;
    changed_.notify_all();
  }

  fs::path program_;
  fs::path log_;
  std::vector<std::string> common_;
  bench::fd said_; ///< Open for as long as it may say something.
  std::optional<child> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool up_ = false;
};

/// Empty, or what went wrong in the round.
std::string serve_round(served& server, const dsec::environment& environment,
                        const std::string& job, std::mt19937_64& random) {
  std::vector<std::string> create = {"create", "--job", job, "--key", "one"};
  for (const auto& layer : environment.layers)
    create.insert(create.end(), {"--image", layer.str()});
  auto id = server.ask(create);
  if (!id)
    return "create: " + id.error().message;
  auto name = id->substr(0, id->find('\n'));
  auto unlucky = 1 + random() % steps;
  for (unsigned step = 1; step <= steps; ++step) {
    auto script = fmt::format("echo {} >> /workspace/.steps; sleep 0.1", step);
    auto answer = std::async(std::launch::async, [&] {
      return server.ask(
        {"exec", "--step", std::to_string(step), name, "--", "/bin/sh", "-c", script});
    });
    if (step == unlucky && !server.crash_in(std::chrono::milliseconds{random() % 150}))
      return "the killed server did not come up again";
    auto done = answer.get();
    if (!done)
      return fmt::format("step {}: {}", step, done.error().message);
  }
  auto seen = server.ask({"exec", name, "--", "/bin/cat", "/workspace/.steps"});
  std::string wanted;
  for (unsigned step = 1; step <= steps; ++step)
    wanted += fmt::format("{}\n", step);
  if (!seen || *seen != wanted)
    return fmt::format("the steps wrote '{}'", seen ? *seen : seen.error().message);
  auto closed = server.ask({"job", "close", job});
  return closed ? "" : "close: " + closed.error().message;
}

} // namespace

int run_serve_rounds(const train_options& options, const kill_options& kills) {
  auto tasks = load_tasks(options.tasks);
  auto environments = tasks ? prepared_environments(options.data_dir, *tasks) : tasks.error();
  if (!environments) {
    fmt::print(stderr, "dsec-demo: {}\n", environments.error().message);
    return 1;
  }
  served server{options, fs::path{own_program()}.parent_path() / "dsec"};
  if (!server.start())
    return 1;
  std::mt19937_64 random{options.seed};
  std::vector<std::string> wrong;
  auto before = take_census(installed(options));
  for (unsigned round = 1; round <= kills.rounds; ++round) {
    auto what = serve_round(server, environments->begin()->second,
                            unused_job(fmt::format("serve-{}", round)), random);
    fmt::print(stderr, "serve round {}: {}\n", round, what.empty() ? "ok" : what);
    if (!what.empty())
      wrong.push_back(what);
    if (round == 1)
      before =
        settled_census(installed(options), 10s, [](const census& x) { return x.leaks() == 0; });
  }
  auto after = settled_census(installed(options), 30s,
                              [&](const census& x) { return leaked(before, x).empty(); });
  auto leaks = leaked(before, after);
  for (const auto& leak : leaks)
    fmt::print("  leaked {}\n", leak);
  if (!server.end())
    wrong.emplace_back("the server did not end in good order");
  bool good = wrong.empty() && leaks.empty();
  fmt::print("serve rounds {}, kills: server {}; wrong {}, leaked {}\n", kills.rounds, kills.rounds,
             wrong.size(), leaks.size());
  if (kills.json)
    fmt::print("{}\n", nlohmann::json{{"rounds", kills.rounds},
                                      {"kills", {{"server", kills.rounds}}},
                                      {"wrong", wrong},
                                      {"leaked", leaks},
                                      {"ok", good}}
                         .dump());
  return good ? 0 : 1;
}

} // namespace dsec::demo
