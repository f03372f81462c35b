#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>

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
    kernel.start({id, data.record.environment, data.record.lease}, reporter(me, epoch));
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
