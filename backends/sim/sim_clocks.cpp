// The clocks that a simulated supervisor keeps: as backends/init/life_clocks.hpp does.

#include "backends/sim/sim_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec {

namespace {

std::chrono::milliseconds left(std::chrono::milliseconds total, sim_time::duration gone) {
  using std::chrono::milliseconds;
  if (total.count() == 0)
    return milliseconds{0};
  return std::max(std::chrono::ceil<milliseconds>(total - gone), milliseconds{1});
}

} // namespace

sim_time::duration sim_world::running_for(const machine_sandbox& x) const {
  return x.ran + (x.at == phase::running ? time_.now() - x.runs_since : sim_time::duration{0});
}

std::chrono::milliseconds sim_world::time_to_live_left(const machine_sandbox& x) const {
  return left(x.spec.clocks.time_to_live, time_.now() - x.created);
}

std::chrono::milliseconds sim_world::rollout_budget_left(const machine_sandbox& x) const {
  return left(x.spec.clocks.rollout_budget, running_for(x));
}

void sim_world::set_clocks(const sandbox_id& id, const sandbox_clocks& clocks) {
  auto at = sandboxes_.find(id);
  if (at == sandboxes_.end())
    return;
  at->second.spec.clocks = clocks;
  watch_clocks(id);
}

void sim_world::watch_clocks(const sandbox_id& id) {
  auto at = sandboxes_.find(id);
  if (at == sandboxes_.end() || at->second.at == phase::building || at->second.at == phase::dead
      || at->second.at == phase::ending)
    return;
  auto& x = at->second;
  const auto& clocks = x.spec.clocks;
  auto next = sim_time::duration::max();
  auto passes = [&](std::chrono::milliseconds total, sim_time::duration gone, bool runs) {
    if (total.count() == 0)
      return false;
    if (runs)
      next = std::min<sim_time::duration>(next, total - gone);
    return gone >= total;
  };
  bool running = x.at == phase::running;
  if (passes(clocks.time_to_live, time_.now() - x.created, true))
    return expire(id, outcome_kind::expired,
                  {end_cause::time_to_live, fmt::format("its time to live of {} ms has passed",
                                                        clocks.time_to_live.count())});
  if (passes(clocks.rollout_budget, running_for(x), running))
    return expire(id, outcome_kind::budget_spent,
                  {end_cause::rollout_budget, fmt::format("its rollout budget of {} ms is spent",
                                                          clocks.rollout_budget.count())});
  auto alarm = ++x.alarm;
  if (next == sim_time::duration::max())
    return;
  time_.after(next, [this, id, alarm, instance = x.instance] {
    auto now = sandboxes_.find(id);
    if (now != sandboxes_.end() && now->second.instance == instance && now->second.alarm == alarm)
      watch_clocks(id);
  });
}

void sim_world::expire(const sandbox_id& id, outcome_kind kind, const sandbox_end& end) {
  std::vector<exec_id> open;
  for (const auto& [exec, x] : sandboxes_.at(id).execs)
    if (!x.result)
      open.push_back(exec);
  for (auto exec : open)
    end_exec(id, exec, {kind, 0, 0, 0, end.detail});
  die(id, end, true);
}

} // namespace dsec
