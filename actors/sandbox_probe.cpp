#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using E = sandbox_event;

/// Somebody waits for it to run.
bool needed(const sandbox_data& data) {
  return !data.execs.empty() || !data.files.empty()
         || std::ranges::any_of(data.waiters, [](const sandbox_waiter& x) {
              return x.heading == sandbox_waiter::goal::resumed;
            });
}

void learn_fate(self_pointer self, error why) {
  auto& data = self->state;
  data.services.kernel.ended_by_itself(
    data.record.id,
    [to = sandbox_inside{self}, probe = data.probe, why = std::move(why)](result<sandbox_end> x) {
      auto end = x ? *std::move(x)
                   : sandbox_end{end_cause::infrastructure,
                                 fmt::format("its supervisor is gone: {}", why.message)};
      caf::anon_send(to, fate_done{probe, std::move(end)});
    });
}

} // namespace

void settled(self_pointer self) {
  if (std::exchange(self->state.settling, false))
    self->send(self->state.services.node, sandbox_settled{self->state.record.id});
}

void probe(self_pointer self) {
  auto& data = self->state;
  data.probing = true;
  auto probe = ++data.probe;
  data.services.kernel.adopt(data.record.id,
                             [to = sandbox_inside{self}, probe](result<found_phase> x) {
                               probe_done done{probe, {}, {}};
                               if (!x) {
                                 done.failure = x.error();
                               } else {
                                 switch (*x) {
                                 case found_phase::running:
                                   done.found = E::found_running;
                                   break;
                                 case found_phase::paused:
                                   done.found = E::found_paused;
                                   break;
                                 case found_phase::reclaimed:
                                   done.found = E::found_reclaimed;
                                   break;
                                 }
                               }
                               caf::anon_send(to, std::move(done));
                             });
  self->delayed_send(self, data.options.backend_timeout,
                     probe_done{probe, {}, error{errc::unavailable, "adopt: no answer in time"}});
}

void on_probe_done(self_pointer self, const probe_done& x) {
  auto& data = self->state;
  if (!data.probing || x.probe != data.probe)
    return;
  if (!x.found) {
    ++data.probe; // The same probe may not report twice.
    return learn_fate(self, x.failure);
  }
  data.probing = false;
  if (!over(data.record.is)) {
    auto target = next(data.record.is, *x.found);
    if (target) {
      apply(self, *x.found);
      // Frozen by its expired lease: it stays so until a request needs it.
      if (*target != S::running && data.record.wanted == S::running && !needed(data))
        data.record.wanted = *target;
    }
    rejoin_execs(self);
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
