#pragma once

#include "backends/backend.hpp"
#include "backends/sim/sim_time.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec {

/// What verbs cost on the simulated machine.
struct sim_costs {
  std::chrono::microseconds start{2'000};
  std::chrono::microseconds pause{3'000};
  std::chrono::microseconds resume{2'000};
  std::chrono::microseconds stop{4'000};
  std::chrono::microseconds call{100}; ///< One round trip to a supervisor.
  std::uint64_t resident_bytes = 64ull << 20;
  std::uint64_t page_out_bytes_per_second = 400ull << 20;
};

/// Chances of trouble, each per thousand verbs. Errors say so; silence never answers, and the verb
/// may or may not have been done.
struct sim_faults {
  std::uint64_t start_fails = 0;
  std::uint64_t pause_fails = 0;
  std::uint64_t reclaim_fails = 0;
  std::uint64_t stop_fails = 0;
  std::uint64_t silent = 0;
  std::uint64_t supervisor_dies = 0; ///< At any verb but start and stop.
};

/// What really happened, whatever the nodes believe.
struct sim_truth {
  /// How often each exec was begun. More than once is a broken promise.
  std::map<std::pair<sandbox_id, exec_id>, std::uint64_t> begun;
  /// Sandboxes that were started again after they had been torn down.
  std::vector<sandbox_id> revived;
};

/// One machine with its supervisors: what outlives a node process. Commands are scripts of one
/// word: `think-ms N` (runs for N ms, not counting frozen time), `exit N`, `self-destruct`;
/// anything else exits with 0 after a moment. Standard output is "exec <id>\n". One thread, that of
/// `time`.
class sim_world {
public:
  sim_world(sim_time& time, std::uint64_t seed, sim_costs costs = {});

  sim_faults faults;

  const sim_truth& truth() const noexcept {
    return truth_;
  }

  /// Ids of everything that holds resources.
  std::vector<sandbox_id> alive() const;

  /// Execs of a sandbox whose outcome its supervisor keeps, or will.
  std::vector<exec_id> kept(const sandbox_id& id) const;
  /// Those of them that have not ended.
  std::vector<exec_id> under_way(const sandbox_id& id) const;

  /// A reboot: everything is gone, at once and without a trace.
  void power_cycle();

  /// Its supervisor dies now, and the sandbox with it. Its resources are held until it is stopped.
  void kill_supervisor(const sandbox_id& id);

private:
  friend class sim_backend;

  enum class phase { building, running, paused, reclaimed, dead, ending };

  struct sim_exec {
    exec_spec spec;
    std::optional<exec_result> result;
    sim_time::duration left{0}; ///< Of its running time.
    sim_time::duration since{0};
    std::uint64_t timer = 0;
    bool discarded = false; ///< Nobody wants to know its outcome.
    std::vector<completion<exec_result>> waiting;
  };

  struct machine_sandbox {
    std::uint64_t instance = 0; ///< Tells it from an earlier one with this id.
    phase at = phase::building;
    start_spec spec;
    std::map<exec_id, sim_exec> execs;
    std::map<std::string, std::string> files;
    std::uint64_t lease = 0;
    sim_time::duration created{0};
    sim_time::duration ran{0};        ///< Unfrozen, until `runs_since`.
    sim_time::duration runs_since{0}; ///< Means something while it runs.
    std::uint64_t alarm = 0;          ///< Counts those that were set; only the newest rings.
    std::vector<std::function<void()>> when_built;
  };

  using table = std::map<sandbox_id, machine_sandbox>;

  void
  start(const start_spec& spec, std::function<void()> built, std::function<void()> unreachable);
  void build(const sandbox_id& id);
  static sim_time::duration running_time(const exec_spec& spec);
  void begin_exec(const sandbox_id& id, exec_id exec);
  void end_exec(const sandbox_id& id, exec_id exec, outcome what);
  void freeze(machine_sandbox& x);
  void thaw(const sandbox_id& id);
  void set_lease(const sandbox_id& id, const lease_terms& lease);
  void set_clocks(const sandbox_id& id, const sandbox_clocks& clocks);
  /// Ends it if one of its clocks has passed, else looks again when the next one does.
  void watch_clocks(const sandbox_id& id);
  /// Its commands get an outcome of that kind; then it dies.
  void expire(const sandbox_id& id, outcome_kind kind, const sandbox_end& end);
  sim_time::duration running_for(const machine_sandbox& x) const;
  std::chrono::milliseconds time_to_live_left(const machine_sandbox& x) const;
  std::chrono::milliseconds rollout_budget_left(const machine_sandbox& x) const;
  void die(const sandbox_id& id, sandbox_end end, bool told);
  sim_time::duration page_out_time() const;

  sim_time& time_;
  sim_random random_;
  sim_costs costs_;
  sim_truth truth_;
  table sandboxes_;
  std::map<sandbox_id, sandbox_end> tombstones_;
  std::map<sandbox_id, bool> torn_down_;
  std::uint64_t instances_ = 0;
  /// The node process that is connected, if one is.
  std::function<void(const sandbox_id&, const sandbox_end&)> on_end_;
};

} // namespace dsec
