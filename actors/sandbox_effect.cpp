#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

/// Completions come from any thread, perhaps before the verb has returned.
completion<void> reporter(const sandbox_inside& to, std::uint64_t epoch) {
  return [to, epoch](result<void> x) {
    verb_done done{epoch, {}, {}};
    if (!x)
      done.failure = x.error();
    caf::anon_send(to, std::move(done));
  };
}

completion<reclaim_report> reclaim_reporter(const sandbox_inside& to, std::uint64_t epoch) {
  return [to, epoch](result<reclaim_report> x) {
    verb_done done{epoch, {}, {}};
    if (x)
      done.report = *x;
    else
      done.failure = x.error();
    caf::anon_send(to, std::move(done));
  };
}

/// As far as the wall clock was not set meanwhile.
std::chrono::milliseconds age_of(self_pointer self) {
  return std::clamp(std::chrono::milliseconds{wall_ms(self) - self->state.record.created_ms},
                    std::chrono::milliseconds{0}, clock_max);
}

} // namespace

void begin_effect(self_pointer self) {
  auto& data = self->state;
  const auto& kernel = data.services.kernel;
  const auto& id = data.record.id;
  auto epoch = ++data.epoch;
  sandbox_inside me{self};
  data.effect = true;
  self->delayed_send(self, data.options.backend_timeout, verb_overdue{epoch});
  switch (data.record.is) {
  case sandbox_state::starting:
    data.start = epoch;
    data.clocks.told = data.clocks.begun_here ? data.clocks.asked : 0;
    kernel.start({id, data.record.environment, data.record.lease, data.record.clocks, age_of(self)},
                 reporter(me, epoch));
    break;
  case sandbox_state::pausing:
    kernel.pause(id, reporter(me, epoch));
    break;
  case sandbox_state::reclaiming:
    kernel.reclaim(id, reclaim_reporter(me, epoch));
    break;
  case sandbox_state::resuming:
    kernel.resume(id, reporter(me, epoch));
    break;
  case sandbox_state::stopping:
    kernel.stop(id, reporter(me, epoch));
    break;
  default:
    break;
  }
}

} // namespace dsec::sandbox_parts
