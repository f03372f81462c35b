#include "sdk/front/convert.hpp"

#include "backends/container/wire.hpp"

namespace dsec::wire {

namespace {

void write(const variables& from, capnp::List<Variable>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) {
    to[i].setName(bytes(from[i].first));
    to[i].setValue(bytes(from[i].second));
  }
}

variables read(capnp::List<Variable>::Reader from) {
  variables x;
  for (auto v : from)
    x.emplace_back(text(v.getName()), text(v.getValue()));
  return x;
}

sandbox_state state_of(std::uint8_t number) {
  return number > static_cast<int>(sandbox_state::lost) ? sandbox_state::lost
                                                        : static_cast<sandbox_state>(number);
}

end_cause cause_of(std::uint8_t number) {
  return number > static_cast<int>(end_cause_last) ? end_cause::infrastructure
                                                   : static_cast<end_cause>(number);
}

} // namespace

void write(const lease_terms& from, Lease::Builder to) {
  to.setPauseAfterMs(from.pause_after.count());
  to.setStopAfterMs(from.stop_after.count());
}

lease_terms read(Lease::Reader from) {
  return {std::chrono::milliseconds{from.getPauseAfterMs()},
          std::chrono::milliseconds{from.getStopAfterMs()}};
}

void write(const sandbox_clocks& from, Clocks::Builder to) {
  to.setTimeToLiveMs(from.time_to_live.count());
  to.setRolloutBudgetMs(from.rollout_budget.count());
  to.setIdleTimeoutMs(from.idle_timeout.count());
  to.setOnIdle(from.on_idle == idle_action::stop ? Clocks::OnIdle::STOP : Clocks::OnIdle::RECLAIM);
}

sandbox_clocks read(Clocks::Reader from) {
  using std::chrono::milliseconds;
  return {milliseconds{from.getTimeToLiveMs()}, milliseconds{from.getRolloutBudgetMs()},
          milliseconds{from.getIdleTimeoutMs()},
          from.getOnIdle() == Clocks::OnIdle::STOP ? idle_action::stop : idle_action::reclaim};
}

void write(const environment& from, Environment::Builder to) {
  auto layers = to.initLayers(from.layers.size());
  for (unsigned i = 0; i < layers.size(); ++i)
    layers.set(i, from.layers[i].str().c_str());
  write(from.env, to.initEnv(from.env.size()));
  to.setUser(bytes(from.user));
  to.setCwd(bytes(from.cwd));
  auto limits = to.initLimits();
  limits.setMemoryBytes(from.limits.memory_bytes);
  limits.setProcesses(from.limits.processes);
  limits.setCpuMilli(from.limits.cpu_milli);
  limits.setDiskBytes(from.limits.disk_bytes);
  to.setAllowSetuid(from.allow_setuid);
}

environment read(Environment::Reader from) {
  environment x;
  for (auto layer : from.getLayers())
    x.layers.emplace_back(text(layer));
  x.env = read(from.getEnv());
  x.user = text(from.getUser());
  x.cwd = text(from.getCwd());
  auto limits = from.getLimits();
  x.limits = {limits.getMemoryBytes(), limits.getProcesses(), limits.getCpuMilli(),
              limits.getDiskBytes()};
  x.allow_setuid = from.getAllowSetuid();
  return x;
}

void write(const exec_spec& from, ExecRequest::Builder to) {
  auto argv = to.initArgv(from.argv.size());
  for (unsigned i = 0; i < argv.size(); ++i)
    argv.set(i, bytes(from.argv[i]));
  write(from.env, to.initEnv(from.env.size()));
  to.setCwd(bytes(from.cwd));
  to.setUser(from.user.c_str());
  to.setDeadlineMs(from.deadline.count());
  to.setSpoolBytes(from.spool_bytes);
  if (from.stdin_bytes) {
    to.setStdin(ExecRequest::Stdin::GIVEN);
    to.setStdinBytes(bytes(*from.stdin_bytes));
  }
  if (from.step) {
    to.setHasStep(true);
    to.setStep(*from.step);
  }
}

exec_spec read(ExecRequest::Reader from) {
  exec_spec x;
  for (auto word : from.getArgv())
    x.argv.push_back(text(word));
  x.env = read(from.getEnv());
  x.cwd = text(from.getCwd());
  x.user = text(from.getUser());
  x.deadline = std::chrono::milliseconds{from.getDeadlineMs()};
  x.spool_bytes = from.getSpoolBytes();
  if (from.getStdin() != ExecRequest::Stdin::NONE)
    x.stdin_bytes = text(from.getStdinBytes());
  if (from.getHasStep())
    x.step = from.getStep();
  return x;
}

void write(const sandbox_info& from, SandboxInfo::Builder to) {
  to.setId(from.id.str().c_str());
  to.setJob(from.job.str().c_str());
  to.setIndex(from.index);
  to.setState(static_cast<std::uint8_t>(from.state));
  to.setCause(static_cast<std::uint8_t>(from.cause));
  to.setDetail(from.detail.c_str());
  to.setSteps(from.steps);
  to.setCreatedMs(from.created_ms);
  to.setEndedMs(from.ended_ms);
  write(from.clocks, to.initClocks());
}

sandbox_info read(SandboxInfo::Reader from) {
  return {sandbox_id{text(from.getId())},
          job_id{text(from.getJob())},
          from.getIndex(),
          state_of(from.getState()),
          cause_of(from.getCause()),
          text(from.getDetail()),
          from.getSteps(),
          from.getCreatedMs(),
          from.getEndedMs(),
          read(from.getClocks())};
}

void write(const sandbox_stats& from, SandboxStats::Builder to) {
  to.setMemoryBytes(from.memory_bytes);
  to.setMemoryPeakBytes(from.memory_peak_bytes);
  to.setSwapBytes(from.swap_bytes);
  to.setProcesses(from.processes);
  to.setCpuUs(from.cpu.count());
  to.setOomKills(from.oom_kills);
  to.setMemoryLimitBytes(from.memory_limit_bytes);
  to.setProcessesLimit(from.processes_limit);
  to.setCpuLimitMilli(from.cpu_limit_milli);
  to.setDiskBytes(from.disk_bytes);
  to.setDiskLimitBytes(from.disk_limit_bytes);
  to.setReadBytes(from.read_bytes);
  to.setWrittenBytes(from.written_bytes);
  to.setTimeToLiveLeftMs(from.time_to_live_left.count());
  to.setRolloutBudgetLeftMs(from.rollout_budget_left.count());
}

sandbox_stats read(SandboxStats::Reader from) {
  return {from.getMemoryBytes(),
          from.getMemoryPeakBytes(),
          from.getSwapBytes(),
          from.getProcesses(),
          std::chrono::microseconds{from.getCpuUs()},
          from.getOomKills(),
          from.getMemoryLimitBytes(),
          from.getProcessesLimit(),
          from.getCpuLimitMilli(),
          from.getDiskBytes(),
          from.getDiskLimitBytes(),
          from.getReadBytes(),
          from.getWrittenBytes(),
          std::chrono::milliseconds{from.getTimeToLiveLeftMs()},
          std::chrono::milliseconds{from.getRolloutBudgetLeftMs()}};
}

void write(const preempt_report& from, PreemptReport::Builder to) {
  to.setSandboxes(from.sandboxes);
  to.setReclaimed(from.reclaimed);
  to.setFailed(from.failed);
  to.setBeforeBytes(from.before_bytes);
  to.setAfterBytes(from.after_bytes);
}

preempt_report read(PreemptReport::Reader from) {
  return {from.getSandboxes(), from.getReclaimed(), from.getFailed(), from.getBeforeBytes(),
          from.getAfterBytes()};
}

} // namespace dsec::wire
