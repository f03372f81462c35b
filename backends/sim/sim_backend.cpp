#include "backends/sim/sim_backend.hpp"

#include <fmt/format.h>

#include <utility>

namespace dsec {

namespace {

error gone(const sandbox_id& id) {
  return {errc::not_found, fmt::format("sandbox {}: nothing of it lives", id)};
}

error unreachable(const sandbox_id& id) {
  return {errc::unavailable, fmt::format("sandbox {}: its supervisor does not answer", id)};
}

} // namespace

sim_backend::sim_backend(sim_world& machine, backend_events events)
  : machine_{machine},
    connected_{std::make_shared<int>(0)} {
  machine_.on_end_ = std::move(events.ended);
}

sim_backend::~sim_backend() {
  disconnect();
}

void sim_backend::disconnect() {
  if (connected_)
    machine_.on_end_ = nullptr;
  connected_.reset();
}

template <class T>
completion<T> sim_backend::while_connected(completion<T> done) const {
  return [done = std::move(done), alive = std::weak_ptr<int>{connected_}](result<T> x) {
    if (!alive.expired())
      done(std::move(x));
  };
}

template <class T, class Verb>
void sim_backend::call(const sandbox_id& id, sim_time::duration cost, std::uint64_t fails,
                       completion<T> done, Verb verb) {
  if (!connected_)
    return;
  auto& machine = machine_;
  bool fail = machine.random_.per_mille(fails);
  bool silent = machine.random_.per_mille(machine.faults.silent);
  bool never_done = silent && machine.random_.below(2) == 0;
  if (machine.random_.per_mille(machine.faults.supervisor_dies))
    machine.kill_supervisor(id);
  machine.time_.after(cost, [&machine, id, fail, silent, never_done, verb,
                             done = while_connected(std::move(done))] {
    auto at = machine.sandboxes_.find(id);
    bool reachable = at != machine.sandboxes_.end() && at->second.at != phase::dead
                     && at->second.at != phase::ending && at->second.at != phase::building;
    if (never_done)
      return;
    if (fail && !silent)
      return done(error{errc::unavailable, fmt::format("sandbox {}: injected failure", id)});
    auto answer = reachable ? verb(at->second) : result<T>{unreachable(id)};
    if (!silent)
      done(std::move(answer));
  });
}

void sim_backend::start(const start_spec& spec, completion<void> done) {
  if (!connected_)
    return;
  auto& machine = machine_;
  auto told = while_connected(std::move(done));
  auto id = spec.id;
  if (machine.random_.per_mille(machine.faults.start_fails)) {
    machine.time_.after(machine.costs_.start, [told, id] {
      told(error{errc::exhausted, fmt::format("start sandbox {}: injected failure", id)});
    });
    return;
  }
  auto silent = machine.random_.per_mille(machine.faults.silent);
  auto built = [told, silent] {
    if (!silent)
      told({});
  };
  // Nothing exists until the request has arrived: a tear-down that came earlier did not see it.
  auto way = std::chrono::microseconds{machine.random_.below(6'000)};
  machine.time_.after(way, [&machine, spec, told, built, alive = std::weak_ptr<int>{connected_}] {
    if (!alive.expired())
      machine.start(spec, built, [told, id = spec.id] { told(unreachable(id)); });
  });
}

template <class T, class Look>
void sim_backend::question(completion<T> done, Look look) const {
  if (!connected_ || machine_.random_.per_mille(machine_.faults.silent))
    return;
  machine_.time_.after(machine_.costs_.call,
                       [look, done = while_connected(std::move(done))] { done(look()); });
}

void sim_backend::adopt(const sandbox_id& id, completion<found_sandbox> done) {
  question(std::move(done), [&machine = machine_, id]() -> result<found_sandbox> {
    auto at = machine.sandboxes_.find(id);
    if (at == machine.sandboxes_.end())
      return gone(id);
    found_sandbox found{found_phase::running, machine.kept(id), machine.under_way(id)};
    switch (at->second.at) {
    case phase::running:
      return found;
    case phase::paused:
      found.phase = found_phase::paused;
      return found;
    case phase::reclaimed:
      found.phase = found_phase::reclaimed;
      return found;
    case phase::building:
    case phase::dead:
    case phase::ending:
      break;
    }
    return gone(id);
  });
}

void sim_backend::ended_by_itself(const sandbox_id& id, completion<sandbox_end> done) {
  question(std::move(done), [&machine = machine_, id]() -> result<sandbox_end> {
    auto at = machine.tombstones_.find(id);
    if (at == machine.tombstones_.end())
      return gone(id);
    return at->second;
  });
}

void sim_backend::pause(const sandbox_id& id, completion<void> done) {
  call(id, machine_.costs_.pause, machine_.faults.pause_fails, std::move(done),
       [&machine = machine_](auto& x) -> result<void> {
         machine.freeze(x);
         return {};
       });
}

void sim_backend::reclaim(const sandbox_id& id, completion<reclaim_report> done) {
  call(id, machine_.page_out_time(), machine_.faults.reclaim_fails, std::move(done),
       [&machine = machine_, id](auto& x) -> result<reclaim_report> {
         if (x.at == phase::running)
           return error{errc::invalid_state, fmt::format("reclaim sandbox {}: it runs", id)};
         x.at = phase::reclaimed;
         return reclaim_report{machine.costs_.resident_bytes, 0};
       });
}

void sim_backend::resume(const sandbox_id& id, completion<void> done) {
  call(id, machine_.costs_.resume, 0, std::move(done),
       [&machine = machine_, id](auto&) -> result<void> {
         machine.thaw(id);
         return {};
       });
}

void sim_backend::stop(const sandbox_id& id, completion<void> done) {
  if (!connected_)
    return;
  auto& machine = machine_;
  auto told = while_connected(std::move(done));
  if (machine.random_.per_mille(machine.faults.stop_fails)) {
    machine.time_.after(machine.costs_.call, [told, id] {
      told(error{errc::unavailable, fmt::format("stop sandbox {}: injected failure", id)});
    });
    return;
  }
  auto silent = machine.random_.per_mille(machine.faults.silent);
  if (auto at = machine.sandboxes_.find(id); at != machine.sandboxes_.end()) {
    machine.die(id, {end_cause::infrastructure, "stopped"}, false);
    at->second.at = phase::ending;
  }
  machine.time_.after(machine.costs_.stop, [&machine, id, silent, told] {
    machine.sandboxes_.erase(id);
    machine.tombstones_.erase(id);
    machine.torn_down_[id] = true;
    if (!silent)
      told({});
  });
}

void sim_backend::exec(const sandbox_id& id, std::shared_ptr<const exec_call> given,
                       completion<exec_result> done) {
  auto told = while_connected(std::move(done));
  call<void>(
    id, machine_.costs_.call, 0,
    [told](const result<void>& begun) {
      if (!begun)
        told(begun.error());
    },
    [&machine = machine_, id, given, told](auto& x) -> result<void> {
      auto [at, fresh] = x.execs.try_emplace(given->id);
      auto& exec = at->second;
      if (exec.result) {
        told(*exec.result);
        return {};
      }
      exec.waiting.push_back(told);
      if (!fresh)
        return {};
      ++machine.truth_.begun[{id, given->id}];
      exec.spec = given->spec;
      exec.left = sim_world::running_time(given->spec);
      if (x.at == phase::running)
        machine.begin_exec(id, given->id);
      return {};
    });
}

void sim_backend::cancel(const sandbox_id& id, exec_id exec) {
  call<void>(
    id, machine_.costs_.call, 0, [](const result<void>&) {},
    [&machine = machine_, id, exec](auto& x) -> result<void> {
      auto at = x.execs.find(exec);
      if (at != x.execs.end() && !at->second.result)
        machine.end_exec(id, exec, {outcome_kind::cancelled, 9, 0, 0, {}});
      return {};
    });
}

void sim_backend::signal(const sandbox_id& id, exec_id exec, int number) {
  call<void>(
    id, machine_.costs_.call, 0, [](const result<void>&) {},
    [&machine = machine_, id, exec, number](auto& x) -> result<void> {
      auto at = x.execs.find(exec);
      if (at != x.execs.end() && !at->second.result)
        machine.end_exec(id, exec, {outcome_kind::signalled, number, 0, 0, {}});
      return {};
    });
}

void sim_backend::forget(const sandbox_id& id, exec_id exec) {
  if (!connected_)
    return;
  auto at = machine_.sandboxes_.find(id);
  if (at != machine_.sandboxes_.end())
    at->second.execs.erase(exec);
}

void sim_backend::discard(const sandbox_id& id, const std::vector<exec_id>& execs) {
  if (!connected_)
    return;
  auto at = machine_.sandboxes_.find(id);
  if (at == machine_.sandboxes_.end())
    return;
  for (auto exec : execs) {
    auto of = at->second.execs.find(exec);
    if (of == at->second.execs.end())
      continue;
    if (of->second.result)
      at->second.execs.erase(of);
    else
      of->second.discarded = true;
  }
}

void sim_backend::file(const sandbox_id& id, file_request request, completion<file_reply> done) {
  call(id, machine_.costs_.call, 0, std::move(done),
       [request = std::move(request)](auto& x) -> result<file_reply> {
         if (const auto* write = std::get_if<file_write>(&request)) {
           auto& bytes = x.files[write->path];
           bytes = write->append ? bytes + write->bytes : write->bytes;
           return file_reply{};
         }
         if (std::holds_alternative<tree_write>(request)
             || std::holds_alternative<tree_read>(request))
           return error{errc::invalid_state, "trees: the sim backend has single files only"};
         if (std::holds_alternative<file_list>(request)) {
           file_reply reply;
           for (const auto& [path, bytes] : x.files)
             reply.entries.push_back({path, {file_type::regular, 0644, 0, 0, bytes.size(), 0}});
           return reply;
         }
         const auto* read = std::get_if<file_read>(&request);
         const auto& path = read ? read->path : std::get<file_stat>(request).path;
         auto at = x.files.find(path);
         if (at == x.files.end())
           return error{errc::not_found, fmt::format("open {}: no such file", path)};
         file_reply reply;
         reply.status = {file_type::regular, 0644, 0, 0, at->second.size(), 0};
         if (read)
           reply.bytes = at->second;
         return reply;
       });
}

void sim_backend::process(const sandbox_id& id, process_request, completion<process_reply> done) {
  call(id, machine_.costs_.call, 0, std::move(done), [](auto&) -> result<process_reply> {
    return error{errc::invalid_state, "processes: the sim backend has commands only"};
  });
}

void sim_backend::set_clocks(const sandbox_id& id, const sandbox_clocks& clocks,
                             completion<void> done) {
  call(id, machine_.costs_.call, 0, std::move(done),
       [&machine = machine_, id, clocks](auto&) -> result<void> {
         machine.set_clocks(id, clocks);
         return {};
       });
}

void sim_backend::stats(const sandbox_id& id, completion<sandbox_stats> done) {
  call(id, machine_.costs_.call, 0, std::move(done),
       [&machine = machine_](auto& x) -> result<sandbox_stats> {
         sandbox_stats stats;
         stats.memory_peak_bytes = machine.costs_.resident_bytes;
         stats.memory_bytes = x.at == phase::reclaimed ? 0 : machine.costs_.resident_bytes;
         stats.swap_bytes = machine.costs_.resident_bytes - stats.memory_bytes;
         for (const auto& [exec, of] : x.execs)
           stats.processes += !of.result;
         const auto& limits = x.spec.environment.limits;
         stats.memory_limit_bytes = limits.memory_bytes;
         stats.processes_limit = limits.processes;
         stats.cpu_limit_milli = limits.cpu_milli;
         stats.disk_limit_bytes = limits.disk_bytes;
         stats.time_to_live_left = machine.time_to_live_left(x);
         stats.rollout_budget_left = machine.rollout_budget_left(x);
         return stats;
       });
}

void sim_backend::renew(const std::vector<sandbox_id>& ids, const lease_terms& lease) {
  if (!connected_)
    return;
  for (const auto& id : ids)
    machine_.set_lease(id, lease);
}

void sim_backend::inventory(completion<std::vector<live_sandbox>> done) {
  question(std::move(done), [&machine = machine_]() -> result<std::vector<live_sandbox>> {
    std::vector<live_sandbox> all;
    for (const auto& [id, x] : machine.sandboxes_)
      all.push_back({id, x.at == phase::ending});
    return all;
  });
}

} // namespace dsec
