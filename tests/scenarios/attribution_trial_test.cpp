// Random rounds of commands that end in every way there is, several at once in one sandbox: each
// has its own cause, always. DSEC_SEED=<number> repeats a run.
#include "tests/scenarios/attribution_rig.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <random>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::uint64_t memory_limit = 64 << 20;
constexpr std::uint64_t disk_limit = 32 << 20;
constexpr std::uint32_t processes_limit = 48;

enum class way {
  succeeds,
  exits_1,
  exits_137,
  kills_itself,
  terminates_itself,
  out_of_memory,
  child_out_of_memory,
  child_out_of_memory_then_kills_itself,
  fills_the_disk,
  runs_out_of_processes,
  misses_its_deadline,
  is_cancelled,
  is_signalled,
  goes_down_with_its_sandbox,
};

/// How a round ends for those that are still running.
enum class ending { none, stopped, init_killed, supervisor_killed };

struct expected {
  outcome_kind kind;
  int code;
  unsigned oom_kills = 0;
};

struct manner {
  way which;
  const char* name;
  /// It reads its gate first; the last program that runs is the command's main process.
  const char* script;
  expected outcome;
  bool forks = false; ///< Which nobody can once the processes have run out.
};

constexpr manner manners[] = {
  {way::succeeds, "succeeds", "exit 0", {outcome_kind::exited, 0}},
  {way::exits_1, "exits 1", "exit 1", {outcome_kind::exited, 1}},
  {way::exits_137, "exits 137", "exit 137", {outcome_kind::exited, 137}},
  {way::kills_itself, "kills itself", "kill -9 $$", {outcome_kind::signalled, SIGKILL}},
  {way::terminates_itself, "terminates itself", "kill $$", {outcome_kind::signalled, SIGTERM}},
  {way::out_of_memory,
   "out of memory",
   "exec tail /dev/zero",
   {outcome_kind::oom_killed, SIGKILL, 1}},
  {way::child_out_of_memory,
   "child out of memory",
   "tail /dev/zero; exit 5",
   {outcome_kind::exited, 5, 1},
   true},
  {way::child_out_of_memory_then_kills_itself,
   "child out of memory, then kills itself",
   "tail /dev/zero; kill -9 $$",
   {outcome_kind::signalled, SIGKILL, 1},
   true},
  {way::fills_the_disk,
   "fills the disk",
   "exec dd if=/dev/zero of=/room/fill$$ bs=65536",
   {outcome_kind::disk_full, 1}},
  {way::runs_out_of_processes,
   "runs out of processes",
   "(while :; do sleep 600 & done) 2>/dev/null; echo > /room/bombed; exit 3",
   {outcome_kind::pids_limit, 3},
   true},
  {way::misses_its_deadline,
   "misses its deadline",
   "exec sleep 600",
   {outcome_kind::timed_out, SIGKILL}},
  {way::is_cancelled, "is cancelled", "exec sleep 600", {outcome_kind::cancelled, SIGKILL}},
  {way::is_signalled, "is signalled", "exec sleep 600", {outcome_kind::signalled, SIGHUP}},
  {way::goes_down_with_its_sandbox,
   "goes down with its sandbox",
   "exec sleep 600",
   {outcome_kind::sandbox_stopped, 0}},
};

const manner& manner_of(way which) {
  return manners[static_cast<std::size_t>(which)];
}

std::uint64_t chosen_seed() {
  if (const char* given = std::getenv("DSEC_SEED"))
    return std::strtoull(given, nullptr, 10);
  return std::random_device{}();
}

class one_round {
public:
  one_round(const exec_rig& rig, std::mt19937_64& random) : rig_{rig}, random_{random} {}

  /// How many commands it was; each had its cause.
  std::size_t play() {
    draw();
    auto from = rig_.at.environment();
    from.limits.memory_bytes = memory_limit;
    from.limits.disk_bytes = disk_limit;
    from.limits.processes = processes_limit;
    box_ = rig_.create(from);
    make_gates();
    for (std::size_t i = 0; i < drawn_.size(); ++i)
      running_.push_back(start(i));
    BOOST_TEST_REQUIRE(value(box_->exec(opener())).ok());
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      if (drawn_[i] == way::is_cancelled)
        running_[i].cancel();
      if (drawn_[i] == way::is_signalled)
        running_[i].signal(SIGHUP);
    }
    // Who goes down with the sandbox is all that is left then.
    for (std::size_t i = 0; i < drawn_.size(); ++i)
      if (drawn_[i] != way::goes_down_with_its_sandbox)
        check(i);
    end();
    for (std::size_t i = 0; i < drawn_.size(); ++i)
      if (drawn_[i] == way::goes_down_with_its_sandbox)
        check(i);
    done(box_->stop());
    return drawn_.size();
  }

private:
  std::uint64_t up_to(std::uint64_t last) {
    return std::uniform_int_distribution<std::uint64_t>{0, last}(random_);
  }

  void draw() {
    const auto count = 1 + up_to(5);
    bomb_ = up_to(4) == 0;
    if (bomb_)
      drawn_.push_back(way::runs_out_of_processes);
    while (drawn_.size() < count) {
      const auto& m = manners[up_to(std::size(manners) - 1)];
      if (m.which != way::runs_out_of_processes && !(bomb_ && m.forks))
        drawn_.push_back(m.which);
    }
    std::shuffle(drawn_.begin(), drawn_.end(), random_);
    const bool left = std::count(drawn_.begin(), drawn_.end(), way::goes_down_with_its_sandbox) > 0;
    ending_ = left ? static_cast<ending>(1 + up_to(2)) : ending::none;
  }

  static std::string gate(std::size_t i) {
    return fmt::format("/room/gate{}", i);
  }

  void make_gates() const {
    std::string all = "mkfifo /room/bombed";
    for (std::size_t i = 0; i < drawn_.size(); ++i)
      all += ' ' + gate(i);
    BOOST_TEST_REQUIRE(value(box_->exec(exec_spec::shell(all))).ok());
  }

  running_exec start(std::size_t i) const {
    const auto& m = manner_of(drawn_[i]);
    const bool late = m.which == way::misses_its_deadline;
    // Whose deadline may pass before its gate is opened has none.
    auto spec =
      exec_spec::shell(late ? m.script : fmt::format("read x < {}; {}", gate(i), m.script));
    if (late)
      spec.deadline = 100ms;
    return box_->start(spec);
  }

  /// A gate opens when its command has come to it. All at once, in any order, but the bomb first:
  /// what forks after it would not have its own cause. The opener itself needs no fork.
  exec_spec opener() {
    std::vector<std::size_t> order(drawn_.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::stable_partition(order.begin(), order.end(),
                          [&](auto i) { return drawn_[i] == way::runs_out_of_processes; });
    std::string script;
    for (auto i : order) {
      if (drawn_[i] != way::misses_its_deadline)
        script += "echo > " + gate(i) + '\n';
      if (drawn_[i] == way::runs_out_of_processes)
        script += "read x < /room/bombed\n";
    }
    auto spec = exec_spec::shell(script + "exit 0");
    spec.deadline = 30s;
    return spec;
  }

  void end() const {
    const demo::installation where{rig_.at.run_dir, rig_.at.data_dir};
    const auto id = box_->id().str();
    switch (ending_) {
    case ending::none:
      break;
    case ending::stopped:
      done(box_->stop());
      break;
    case ending::init_killed:
      BOOST_TEST_REQUIRE(::kill(reaper_of(demo::init_pids(where).at(id)), SIGKILL) == 0);
      break;
    case ending::supervisor_killed:
      BOOST_TEST_REQUIRE(::kill(demo::init_pids(where).at(id), SIGKILL) == 0);
      break;
    }
  }

  expected expected_of(way which) const {
    auto e = manner_of(which).outcome;
    if (which == way::goes_down_with_its_sandbox && ending_ == ending::init_killed)
      e.kind = outcome_kind::self_inflicted;
    if (which == way::goes_down_with_its_sandbox && ending_ == ending::supervisor_killed)
      e.kind = outcome_kind::infrastructure;
    return e;
  }

  void check(std::size_t i) const {
    const auto wanted = expected_of(drawn_[i]);
    const auto x = value(running_[i].result());
    std::string others;
    for (auto each : drawn_)
      others += fmt::format(" [{}]", manner_of(each).name);
    BOOST_TEST_CONTEXT("'" << manner_of(drawn_[i]).name << "' of" << others << ", said: " << x.err
                           << "; cause: " << x.outcome.cause) {
      BOOST_TEST(to_string(x.outcome.kind) == to_string(wanted.kind));
      BOOST_TEST(x.outcome.code == wanted.code);
      BOOST_TEST(x.oom_kills == wanted.oom_kills);
      if (wanted.kind == outcome_kind::oom_killed) {
        BOOST_TEST(x.outcome.limit_bytes == memory_limit);
        BOOST_TEST(x.outcome.peak_bytes > memory_limit / 2);
        BOOST_TEST(x.outcome.cause.find("killed tail (pid ") == 0u);
      }
      if (wanted.kind == outcome_kind::disk_full)
        BOOST_TEST(x.outcome.limit_bytes == disk_limit);
    }
  }

  const exec_rig& rig_;
  std::mt19937_64& random_;
  std::vector<way> drawn_;
  bool bomb_ = false;
  ending ending_ = ending::none;
  std::optional<sandbox> box_;
  std::vector<running_exec> running_;
};

} // namespace

BOOST_AUTO_TEST_SUITE(attribution, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(every_command_has_its_own_cause_of_death_whatever_kills_the_others,
                        exec_rig) {
  const auto seed = chosen_seed();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random{seed};
  const auto trials = at_size(300, 1000);
  std::size_t played = 0;
  for (std::size_t n = 0; played < trials; ++n)
    BOOST_TEST_CONTEXT("repeat with DSEC_SEED=" << seed << ", round " << n)
  played += one_round{*this, random}.play();
  BOOST_TEST(played >= trials);
}

BOOST_AUTO_TEST_SUITE_END()
