#include "backends/sim/sim_world.hpp"

#include <fmt/format.h>

#include <charconv>

namespace dsec {

namespace {

std::uint64_t number(const exec_spec& spec) {
  std::uint64_t x = 0;
  if (spec.argv.size() > 1)
    std::from_chars(spec.argv[1].data(), spec.argv[1].data() + spec.argv[1].size(), x);
  return x;
}

outcome outcome_of(const exec_spec& spec) {
  outcome x;
  x.kind = outcome_kind::exited;
  if (spec.argv.front() == "exit")
    x.code = static_cast<std::int32_t>(number(spec));
  return x;
}

} // namespace

sim_world::sim_world(sim_time& time, std::uint64_t seed, sim_costs costs)
  : time_{time},
    random_{seed},
    costs_{costs} {}

std::vector<sandbox_id> sim_world::alive() const {
  std::vector<sandbox_id> all;
  for (const auto& [id, x] : sandboxes_)
    all.push_back(id);
  return all;
}

std::vector<exec_id> sim_world::kept(const sandbox_id& id) const {
  std::vector<exec_id> all;
  if (auto at = sandboxes_.find(id); at != sandboxes_.end())
    for (const auto& [exec, x] : at->second.execs)
      all.push_back(exec);
  return all;
}

std::vector<exec_id> sim_world::under_way(const sandbox_id& id) const {
  std::vector<exec_id> all;
  if (auto at = sandboxes_.find(id); at != sandboxes_.end())
    for (const auto& [exec, x] : at->second.execs)
      if (!x.result)
        all.push_back(exec);
  return all;
}

void sim_world::power_cycle() {
  sandboxes_.clear();
  tombstones_.clear();
}

void sim_world::kill_supervisor(const sandbox_id& id) {
  die(id, {end_cause::infrastructure, "dsec-init died"}, true);
}

void sim_world::start(const start_spec& spec, std::function<void()> built,
                      std::function<void()> unreachable) {
  auto [at, fresh] = sandboxes_.try_emplace(spec.id);
  auto& x = at->second;
  if (!fresh) {
    if (x.at == phase::building)
      x.when_built.push_back(std::move(built));
    else
      time_.after(costs_.call, x.at == phase::dead || x.at == phase::ending ? std::move(unreachable)
                                                                            : std::move(built));
    return;
  }
  if (torn_down_.contains(spec.id))
    truth_.revived.push_back(spec.id);
  x.instance = ++instances_;
  x.spec = spec;
  x.when_built.push_back(std::move(built));
  time_.after(costs_.start, [this, id = spec.id, instance = x.instance] {
    auto now = sandboxes_.find(id);
    if (now != sandboxes_.end() && now->second.instance == instance
        && now->second.at == phase::building)
      build(id);
  });
}

void sim_world::build(const sandbox_id& id) {
  auto& x = sandboxes_.at(id);
  x.at = phase::running;
  x.created = time_.now() - x.spec.age;
  x.runs_since = time_.now();
  set_lease(id, x.spec.lease);
  for (auto& done : std::exchange(x.when_built, {}))
    done();
  watch_clocks(id);
}

sim_time::duration sim_world::running_time(const exec_spec& spec) {
  if (spec.argv.front() == "think-ms")
    return std::chrono::milliseconds{number(spec)};
  return std::chrono::microseconds{700};
}

void sim_world::begin_exec(const sandbox_id& id, exec_id exec) {
  auto& x = sandboxes_.at(id);
  auto& running = x.execs.at(exec);
  running.since = time_.now();
  auto timer = ++running.timer;
  time_.after(running.left, [this, id, exec, timer, instance = x.instance] {
    auto at = sandboxes_.find(id);
    if (at == sandboxes_.end() || at->second.instance != instance)
      return;
    auto of = at->second.execs.find(exec);
    if (of == at->second.execs.end() || of->second.timer != timer || of->second.result)
      return;
    if (of->second.spec.argv.front() == "self-destruct")
      die(id, {end_cause::self_inflicted, "the agent killed its init"}, true);
    else
      end_exec(id, exec, outcome_of(of->second.spec));
  });
}

void sim_world::end_exec(const sandbox_id& id, exec_id exec, outcome what) {
  auto& execs = sandboxes_.at(id).execs;
  auto& x = execs.at(exec);
  ++x.timer;
  exec_result result;
  result.outcome = std::move(what);
  result.out = fmt::format("exec {}\n", exec);
  result.out_bytes = result.out.size();
  x.result = std::move(result);
  auto waiting = std::exchange(x.waiting, {});
  auto kept = *x.result;
  if (x.discarded)
    execs.erase(exec);
  for (auto& done : waiting)
    done(kept);
}

void sim_world::freeze(machine_sandbox& x) {
  if (x.at != phase::running)
    return;
  x.ran = running_for(x);
  x.at = phase::paused;
  for (auto& [id, exec] : x.execs) {
    if (exec.result)
      continue;
    ++exec.timer;
    exec.left -= std::min(exec.left, time_.now() - exec.since);
  }
}

void sim_world::thaw(const sandbox_id& id) {
  auto& x = sandboxes_.at(id);
  if (x.at != phase::paused && x.at != phase::reclaimed)
    return;
  x.at = phase::running;
  x.runs_since = time_.now();
  for (auto& [exec, of] : x.execs)
    if (!of.result)
      begin_exec(id, exec);
  watch_clocks(id);
}

void sim_world::set_lease(const sandbox_id& id, const lease_terms& lease) {
  auto at = sandboxes_.find(id);
  if (at == sandboxes_.end())
    return;
  auto number = ++at->second.lease;
  auto when = [&](std::chrono::milliseconds delay, auto then) {
    if (delay.count() == 0)
      return;
    time_.after(delay, [this, id, number, then, instance = at->second.instance] {
      auto now = sandboxes_.find(id);
      if (now != sandboxes_.end() && now->second.instance == instance && now->second.lease == number
          && now->second.at != phase::ending && now->second.at != phase::dead)
        then(now->second);
    });
  };
  when(lease.pause_after, [this](machine_sandbox& x) {
    freeze(x);
    if (x.at == phase::paused)
      x.at = phase::reclaimed;
  });
  when(lease.stop_after, [this, id](machine_sandbox&) {
    die(id, {end_cause::lease_expired, "the job's lease has expired"}, true);
  });
}

void sim_world::die(const sandbox_id& id, sandbox_end end, bool told) {
  auto at = sandboxes_.find(id);
  if (at == sandboxes_.end() || at->second.at == phase::ending || at->second.at == phase::dead)
    return;
  at->second.at = phase::dead;
  if (end.cause != end_cause::infrastructure)
    tombstones_[id] = end;
  std::vector<completion<exec_result>> lost;
  for (auto& [exec, x] : at->second.execs)
    for (auto& done : std::exchange(x.waiting, {}))
      lost.push_back(std::move(done));
  for (auto& done : lost)
    done(error{errc::unavailable, fmt::format("exec in sandbox {}: its supervisor is gone", id)});
  if (told && on_end_)
    on_end_(id, end);
}

sim_time::duration sim_world::page_out_time() const {
  return std::chrono::microseconds{costs_.resident_bytes * 1'000'000
                                   / costs_.page_out_bytes_per_second};
}

} // namespace dsec
