// What the actor does about the sandbox's clocks: the two that end it are the backend's to keep and
// are made durable and told here; the idle time-out is kept here.

#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;

/// A timer keeps its actor in memory, also one that has ended: longer waits go in steps.
constexpr std::chrono::minutes timer_longest{5};

/// Its supervisor is there to be told.
bool has_supervisor(sandbox_state is) {
  return is == S::running || is == S::pausing || is == S::paused || is == S::reclaiming
         || is == S::reclaimed || is == S::resuming;
}

/// Answers those whose clocks are known to the backend, or cannot be any more.
void answer_clock_waiters(self_pointer self) {
  auto& data = self->state;
  auto& clocks = data.clocks;
  if (clocks.waiters.empty())
    return;
  auto over = ended(data);
  auto waiting = std::exchange(clocks.waiters, {});
  for (auto& [version, promise] : waiting) {
    if (over)
      promise.deliver(to_caf(*over));
    else if (has_supervisor(data.record.is) && version <= clocks.told)
      promise.deliver(ack{});
    else
      clocks.waiters.emplace_back(version, std::move(promise));
  }
}

void fail_telling(self_pointer self, const error& why) {
  auto& data = self->state;
  for (auto& [version, promise] : std::exchange(data.clocks.waiters, {}))
    promise.deliver(to_caf({why.code, fmt::format("clocks of sandbox {}: recorded, but its "
                                                  "supervisor was not told: {}",
                                                  data.record.id, why.message)}));
  // Whatever answers next, this actor or a later one, is told again.
  if (!data.probing && !ended(data))
    probe(self);
}

bool used(const sandbox_data& data) {
  return !data.execs.empty() || !data.files.empty() || processes_live(data)
         || std::ranges::any_of(data.waiters, [](const sandbox_waiter& x) {
              return x.heading == sandbox_waiter::goal::resumed;
            });
}

/// Nobody used it for as long as it may be unused.
void act_on_idleness(self_pointer self) {
  auto& data = self->state;
  auto& record = data.record;
  data.clocks.idle = false;
  switch (data.clocks.shown.on_idle) {
  case idle_action::reclaim:
    record.wanted = S::reclaimed;
    break;
  case idle_action::stop:
    record.wanted = S::terminated;
    record.cause = end_cause::idle;
    record.detail = fmt::format("nobody used it for {} ms", data.clocks.shown.idle_timeout.count());
    break;
  }
  data.intent_dirty = true;
  converge(self);
}

void arm_idle(self_pointer self) {
  auto& data = self->state;
  auto& clocks = data.clocks;
  if (std::exchange(clocks.timer_set, true))
    return;
  auto left = clocks.idle_since + clocks.shown.idle_timeout - self->clock().now();
  self->delayed_send(self,
                     std::clamp<caf::actor_clock::duration_type>(left, left.zero(), timer_longest),
                     idle_due{clocks.timer});
}

/// Commands that an earlier life of the node began may run yet. Asks which are still kept.
void look_for_inherited(self_pointer self) {
  auto& data = self->state;
  data.services.kernel.adopt(data.record.id, [to = sandbox_inside{self},
                                              look = ++data.clocks.look](result<found_sandbox> x) {
    if (x)
      caf::anon_send(to, idle_look{look, std::move(x->execs), {}});
  });
  // Time begins anew, and with it another look, unless this one shows that nothing runs.
  data.clocks.idle_since = self->clock().now();
  arm_idle(self);
}

} // namespace

caf::result<ack> request_clocks(self_pointer self, const set_clocks& x) {
  auto& data = self->state;
  if (auto valid = validate(x.clocks); !valid)
    return to_caf(valid.error());
  if (data.broken)
    return to_caf(*data.broken);
  if (auto why = ended_already(data))
    return to_caf(*why);
  auto promise = self->make_response_promise<ack>();
  data.record.clocks = x.clocks;
  data.clocks.waiters.emplace_back(++data.clocks.asked, promise);
  data.intent_dirty = true;
  converge(self);
  return promise;
}

void clocks_written(self_pointer self, std::uint64_t version, const sandbox_clocks& written) {
  auto& clocks = self->state.clocks;
  clocks.written = version;
  if (std::exchange(clocks.shown, written).idle_timeout == written.idle_timeout)
    return;
  ++clocks.timer;
  clocks.timer_set = false;
}

void tell_clocks(self_pointer self) {
  auto& data = self->state;
  auto& clocks = data.clocks;
  answer_clock_waiters(self);
  if (clocks.telling || clocks.told == clocks.written || data.probing || data.fault
      || !has_supervisor(data.record.is))
    return;
  clocks.telling = true;
  auto attempt = ++clocks.attempt;
  data.services.kernel.set_clocks(data.record.id, clocks.shown,
                                  [to = sandbox_inside{self}, attempt,
                                   version = clocks.written](result<void> x) {
                                    clocks_done done{attempt, version, {}};
                                    if (!x)
                                      done.failure = x.error();
                                    caf::anon_send(to, std::move(done));
                                  });
  auto limit = data.options.backend_timeout;
  self->delayed_send(
    self, limit,
    clocks_done{attempt, 0,
                error{errc::unavailable, fmt::format("no answer within {} ms", limit.count())}});
}

void on_clocks_done(self_pointer self, const clocks_done& x) {
  auto& data = self->state;
  if (!data.clocks.telling || x.attempt != data.clocks.attempt)
    return;
  data.clocks.telling = false;
  if (x.failure)
    return fail_telling(self, *x.failure);
  data.clocks.told = x.version;
  tell_clocks(self);
}

void forget_told_clocks(sandbox_data& data) {
  data.clocks.telling = false;
  data.clocks.told = 0;
}

void refuse_clocks(self_pointer self, const error& cause) {
  for (auto& [version, promise] : std::exchange(self->state.clocks.waiters, {}))
    promise.deliver(to_caf(cause));
}

void watch_idle(self_pointer self) {
  auto& data = self->state;
  auto& clocks = data.clocks;
  bool counts = clocks.shown.idle_timeout.count() > 0 && data.record.is == S::running
                && data.record.wanted == S::running && !data.probing && !data.fault && !data.broken
                && !used(data);
  if (!counts) {
    clocks.idle = false;
    return;
  }
  if (!std::exchange(clocks.idle, true)) {
    clocks.idle_since = self->clock().now();
    ++clocks.look; // What an older one sees is no longer asked.
  }
  arm_idle(self);
}

void on_idle_due(self_pointer self, const idle_due& x) {
  auto& clocks = self->state.clocks;
  if (x.timer != clocks.timer)
    return;
  clocks.timer_set = false;
  if (!clocks.idle)
    return;
  if (self->clock().now() < clocks.idle_since + clocks.shown.idle_timeout)
    return arm_idle(self);
  if (!clocks.inherited.empty())
    return look_for_inherited(self);
  act_on_idleness(self);
}

void on_idle_look(self_pointer self, const idle_look& x) {
  auto& data = self->state;
  auto& clocks = data.clocks;
  if (!clocks.idle || x.look != clocks.look)
    return;
  if (x.processes) {
    // Its outcome is kept for whoever asks; it runs no more.
    if (*x.processes == 0)
      clocks.inherited.clear();
  } else {
    std::erase_if(clocks.inherited,
                  [&](exec_id id) { return std::ranges::find(x.execs, id) == x.execs.end(); });
  }
  if (clocks.inherited.empty())
    return act_on_idleness(self);
  if (x.processes)
    return;
  data.services.kernel.stats(data.record.id, [to = sandbox_inside{self},
                                              look = x.look](const result<sandbox_stats>& stats) {
    if (stats)
      caf::anon_send(to, idle_look{look, {}, stats->processes});
  });
}

} // namespace dsec::sandbox_parts
