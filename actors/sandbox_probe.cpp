#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using E = sandbox_event;

/// Somebody waits for it to run.
bool needed(const sandbox_data& data) {
  return std::ranges::any_of(data.execs, [](const auto& x) { return !x.second.abandoned; })
         || !data.files.empty() || processes_wait(data)
         || std::ranges::any_of(data.waiters, [](const sandbox_waiter& x) {
              return x.heading == sandbox_waiter::goal::resumed;
            });
}

E event_of(found_phase x) {
  switch (x) {
  case found_phase::running:
    return E::found_running;
  case found_phase::paused:
    return E::found_paused;
  case found_phase::reclaimed:
    break;
  }
  return E::found_reclaimed;
}

/// Whether somebody may still want the outcome of an exec that an earlier life has started. What
/// was not recorded had its caller in that life; what was is wanted until its outcome is durable.
bool wanted(const sandbox_data& data, exec_id exec) {
  if (data.execs.contains(exec))
    return true;
  if (exec >= unrecorded_execs)
    return false;
  auto step = data.steps.find(exec);
  return step != data.steps.end() && !step->second.done;
}

void discard_unwanted(self_pointer self, std::vector<exec_id> held) {
  const auto& data = self->state;
  std::erase_if(held, [&](exec_id exec) { return wanted(data, exec); });
  if (!held.empty())
    data.services.kernel.discard(data.record.id, held);
}

sandbox_end supervisor_gone(const error& why) {
  return {end_cause::infrastructure, fmt::format("its supervisor is gone: {}", why.message)};
}

/// Asks how it ended. `otherwise`, if nobody knows.
void learn_fate(self_pointer self, sandbox_end otherwise) {
  auto& data = self->state;
  auto limit = data.options.backend_timeout;
  auto silent = otherwise;
  silent.detail +=
    fmt::format("; the backend did not say within {} ms how it ended", limit.count());
  auto probe = ++data.probe; // The same probe may not report twice.
  self->delayed_send(self, limit, fate_done{probe, std::move(silent)});
  data.services.kernel.ended_by_itself(data.record.id, [to = sandbox_inside{self}, probe,
                                                        otherwise = std::move(otherwise)](
                                                         result<sandbox_end> x) mutable {
    caf::anon_send(to, fate_done{probe, x ? *std::move(x) : std::move(otherwise)});
  });
}

} // namespace

void learn_why_it_did_not_start(self_pointer self, const error& why) {
  self->state.failure = why;
  self->state.probing = true;
  learn_fate(self, {end_cause::start_failed, fmt::format("start: {}", why.message)});
}

void settled(self_pointer self) {
  if (std::exchange(self->state.settling, false))
    self->send(self->state.services.node, sandbox_settled{self->state.record.id});
}

void probe(self_pointer self) {
  auto& data = self->state;
  data.probing = true;
  forget_told_clocks(data);
  auto probe = ++data.probe;
  data.services.kernel.adopt(data.record.id,
                             [to = sandbox_inside{self}, probe](result<found_sandbox> x) {
                               probe_done done{probe, {}, {}, {}, {}};
                               if (x) {
                                 done.found = event_of(x->phase);
                                 done.execs = std::move(x->execs);
                                 done.running = std::move(x->running);
                               } else {
                                 done.failure = x.error();
                               }
                               caf::anon_send(to, std::move(done));
                             });
  self->delayed_send(
    self, data.options.backend_timeout,
    probe_done{probe,
               {},
               error{errc::unavailable, fmt::format("adopt: no answer within {} ms",
                                                    data.options.backend_timeout.count())},
               {},
               {}});
}

void on_probe_done(self_pointer self, const probe_done& x) {
  auto& data = self->state;
  if (!data.probing || x.probe != data.probe)
    return;
  if (!x.found)
    return learn_fate(self, supervisor_gone(x.failure));
  data.probing = false;
  if (!over(data.record.is))
    end_abandoned_execs(self, x.running);
  discard_unwanted(self, x.execs);
  data.clocks.inherited = x.execs;
  std::erase_if(data.clocks.inherited, [&](exec_id exec) { return data.execs.contains(exec); });
  if (!over(data.record.is)) {
    auto target = next(data.record.is, *x.found);
    if (target) {
      apply(self, *x.found);
      // Frozen by its expired lease: it stays so until a request needs it.
      if (*target != S::running && data.record.wanted == S::running && !needed(data))
        data.record.wanted = *target;
    }
    rejoin_execs(self);
    look_for_processes(self);
    if (!ended(data))
      refuse_lost(data);
  }
  settled(self);
  converge(self);
}

void on_fate_done(self_pointer self, const fate_done& x) {
  auto& data = self->state;
  if (!data.probing || x.probe != data.probe)
    return;
  data.probing = false;
  fail(self, x.end);
}

} // namespace dsec::sandbox_parts
