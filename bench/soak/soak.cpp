// Random verbs on many sandboxes, with random kills of everything of ours; what must hold is
// checked after every round.

#include "bench/benches.hpp"
#include "bench/demo/census.hpp"
#include "bench/demo/child.hpp"
#include "bench/soak/notices.hpp"
#include "bench/soak/usage.hpp"
#include "bench/spawn.hpp"
#include "bench/waits.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <random>
#include <sstream>

namespace dsec::bench {

namespace {

using namespace std::chrono_literals;

/// How long a node process may take to recover and to judge, beside its working time.
constexpr auto recovery_patience = 180s;
constexpr unsigned lines_shown = 20;

struct soak {
  const bench_options& options;
  testbed& bed;
  std::filesystem::path state_dir, notices_file;
  demo::installation where;
  std::mt19937_64 random;

  soak_notices known;
  std::uint64_t verbs = 0, violations = 0;
  std::map<std::string, std::uint64_t> kills;
  std::map<std::string, usage_history> daemons;

  unsigned sandboxes() const {
    return options.quick ? 24 : 200;
  }
};

/// What the node process says, as it comes.
class node_output {
public:
  node_output(soak& of, fd pipe) : soak_{of}, pipe_{std::move(pipe)} {}

  int descriptor() const {
    return pipe_.get();
  }

  /// Takes what is there. False at the end.
  bool take() {
    std::array<char, 65536> bytes;
    const auto size = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (size <= 0)
      return size < 0 && errno == EINTR;
    rest_.append(bytes.data(), static_cast<std::size_t>(size));
    for (std::size_t end; (end = rest_.find('\n')) != rest_.npos; rest_.erase(0, end + 1))
      line(rest_.substr(0, end));
    return true;
  }

private:
  void line(const std::string& text) {
    std::istringstream in{text};
    std::string word, box;
    std::uint64_t number = 0;
    in >> word;
    if (word == "ack" && in >> box >> number)
      soak_.known.acked[box].insert(number);
    else if (word == "did" && in >> number)
      soak_.verbs += number;
    else if (word == "wrong" && ++soak_.violations <= lines_shown)
      progress("soak: " + text);
  }

  soak& soak_;
  fd pipe_;
  std::string rest_;
};

struct node_life {
  demo::child process;
  node_output output;
};

node_life start_node(soak& x, unsigned seconds) {
  x.known.write(x.notices_file);
  int ends[2];
  checked(::pipe2(ends, O_CLOEXEC), "pipe to the node process");
  fd reading{ends[0]}, writing{ends[1]};
  child_program program;
  program.argv = {sibling_program("dsec-bench-soak"),
                  "--state-dir=" + x.state_dir.string(),
                  "--data-dir=" + x.where.data_dir.string(),
                  "--run-dir=" + x.where.run_dir.string(),
                  "--base=" + x.bed.environment().layers.front().str(),
                  "--notices=" + x.notices_file.string(),
                  fmt::format("--sandboxes={}", x.sandboxes()),
                  fmt::format("--seconds={}", seconds),
                  fmt::format("--seed={}", x.random())};
  program.out = writing.get();
  auto started = value_of(demo::child::start(program), "start the node process");
  return {std::move(started), node_output{x, std::move(reading)}};
}

/// Takes the output until `until`, or until the process and its output have ended. True if they
/// have.
bool follow(node_life& node, deadline until) {
  while (wait_readable(node.output.descriptor(), until))
    if (!node.output.take())
      return true;
  return false;
}

/// Tells the node process before it happens, so that it knows when it looks.
void kill_init(soak& x) {
  const auto inits = demo::init_pids(x.where);
  if (inits.empty())
    return;
  const auto& [box, pid] =
    *std::next(inits.begin(), static_cast<std::ptrdiff_t>(x.random() % inits.size()));
  x.known.killed.insert(box);
  x.known.write(x.notices_file);
  if (::kill(pid, SIGKILL) == 0)
    ++x.kills["init"];
}

void kill_spawner(soak& x) {
  const int pid = demo::spawner_pid(x.where);
  if (pid <= 0)
    return;
  x.known.spawner = true;
  x.known.write(x.notices_file);
  if (::kill(pid, SIGKILL) == 0)
    ++x.kills["spawner"];
}

void sample(soak& x, pid_t node) {
  x.daemons["node"].add(usage_of(node));
  x.daemons["spawner"].add(usage_of(demo::spawner_pid(x.where)));
  std::vector<pid_t> inits;
  for (const auto& [box, pid] : demo::init_pids(x.where))
    inits.push_back(pid);
  x.daemons["init"].add(mean_usage(inits));
}

/// One life of the node process, some kills in it, and, every other time, its own violent end.
void round(soak& x, unsigned number) {
  const unsigned seconds = x.options.quick ? 4 : 12;
  x.known.spawner = false;
  auto node = start_node(x, seconds);
  const auto begun = x.verbs;
  const auto patience = within(recovery_patience);
  // Recovery is over when verbs are counted.
  while (x.verbs == begun && follow(node, std::min(patience, within(100ms))) == false)
    if (std::chrono::steady_clock::now() >= patience)
      throw std::runtime_error{"soak: the node process did not recover"};
  const auto moments = 2 + x.random() % 3;
  const auto end = within(std::chrono::milliseconds{seconds * 800});
  bool over = false;
  for (unsigned i = 0; i < moments && !over; ++i) {
    go_on();
    over = follow(node, std::min(end, within(std::chrono::milliseconds{
                                        x.random() % (seconds * 1000 / moments)})));
    if (over)
      break;
    if (x.random() % 3 == 0)
      kill_spawner(x);
    else
      kill_init(x);
  }
  over = over || follow(node, end);
  if (!over)
    sample(x, node.process.pid());
  if (!over && number % 2 == 0) {
    node.process.crash();
    ++x.kills["node"];
  }
  if (!follow(node, patience))
    throw std::runtime_error{"soak: the node process did not end"};
  const auto code = node.process.wait(within(10s));
  if (code != 0 && code != 128 + SIGKILL) {
    ++x.violations;
    progress(fmt::format("soak: the node process ended with {}", code.value_or(-1)));
  }
}

/// A calm life of the node process; of 0 seconds it stops every sandbox.
void calm_life(soak& x, unsigned seconds) {
  auto node = start_node(x, seconds);
  if (!follow(node, within(recovery_patience)) || node.process.wait(within(10s)) != 0)
    throw std::runtime_error{"soak: a node process that nobody killed failed"};
}

/// Every sandbox is stopped; whatever is left of them afterwards has leaked.
std::uint64_t leaks_after_the_end(soak& x, const demo::census& before) {
  calm_life(x, 0);
  const auto after = demo::settled_census(x.where, 60s, [&](const demo::census& y) {
    return demo::leaked(before, y).empty();
  });
  const auto left = demo::leaked(before, after);
  for (const auto& leak : left)
    progress("soak: leaked " + leak);
  return left.size();
}

} // namespace

report run_soak(const bench_options& options) {
  report found{"soak"};
  testbed bed{options};
  soak x{options,
         bed,
         bed.place().root() / "state",
         bed.place().root() / "notices",
         {bed.run_dir(), bed.data_dir()},
         std::mt19937_64{options.seed},
         {},
         0,
         0,
         {},
         {}};
  const auto minutes = options.minutes > 0 ? options.minutes : options.quick ? 0.75 : 10.0;
  progress(
    fmt::format("soak: {} sandboxes, {} minutes, seed {}", x.sandboxes(), minutes, options.seed));
  // What stands between sandboxes stands from here on.
  calm_life(x, 1);
  calm_life(x, 0);
  const auto before =
    demo::settled_census(x.where, 60s, [](const demo::census& y) { return y.leaks() == 0; });
  const auto end = within(std::chrono::milliseconds{static_cast<std::int64_t>(minutes * 60'000)});
  unsigned rounds = 0;
  while (std::chrono::steady_clock::now() < end) {
    round(x, ++rounds);
    progress(fmt::format("soak: round {}: {} verbs, {} violations", rounds, x.verbs, x.violations));
  }
  const auto leaked = leaks_after_the_end(x, before);

  std::uint64_t kills = 0;
  for (const auto& [role, count] : x.kills) {
    found.metric("kills_" + role, static_cast<double>(count));
    kills += count;
  }
  double growth = 0;
  for (const auto& [role, history] : x.daemons) {
    growth = std::max(growth, history.rss_growth_pct());
    found.metric(role + "_rss_kb", history.last().rss_kb);
    found.metric(role + "_rss_growth_pct", history.rss_growth_pct());
    found.metric(role + "_descriptors", history.last().descriptors);
    found.metric(role + "_descriptors_growth_pct", history.descriptors_growth_pct());
    found.metric(role + "_threads", history.last().threads);
    found.metric(role + "_threads_growth_pct", history.threads_growth_pct());
  }
  found.metric("minutes", minutes);
  found.metric("sandboxes", x.sandboxes());
  found.metric("rounds", rounds);
  found.metric("verbs", static_cast<double>(x.verbs));
  found.metric("kills", static_cast<double>(kills));
  found.metric("invariant_violations", static_cast<double>(x.violations));
  found.metric("leaked", static_cast<double>(leaked));
  found.metric("rss_growth_pct", growth);
  found.note("seed", std::to_string(options.seed));
  return found;
}

} // namespace dsec::bench
