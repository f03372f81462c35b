#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using S = sandbox_state;
using E = sandbox_event;

} // namespace

void on_verb_done(self_pointer self, const verb_done& x) {
  auto& data = self->state;
  if (x.epoch == data.start)
    data.start = 0;
  if (x.epoch != data.epoch || !data.effect)
    return converge(self); // Overtaken; but a tear-down may have waited for it.
  data.effect = false;
  auto fault = [&](std::string_view verb) {
    data.failure = x.failure;
    fail(self, {end_cause::infrastructure, fmt::format("{}: {}", verb, x.failure->message)});
  };
  switch (data.record.is) {
  case S::starting:
    if (x.failure)
      return learn_why_it_did_not_start(self, *x.failure);
    apply(self, E::started);
    break;
  case S::pausing:
    if (x.failure)
      return fault("pause");
    data.reclaimed = {};
    apply(self, E::paused);
    break;
  case S::reclaiming:
    if (x.failure) {
      apply(self, E::paused);
      if (data.record.wanted == S::reclaimed)
        data.record.wanted = S::paused;
      refuse(self, sandbox_waiter::goal::reclaimed, *x.failure);
    } else {
      data.reclaimed = x.report;
      apply(self, E::reclaimed);
    }
    break;
  case S::resuming:
    if (x.failure)
      return fault("resume");
    apply(self, E::resumed);
    break;
  case S::stopping:
    if (!x.failure) {
      // Before its tombstone is durable.
      finish_execs(self, true);
      finish_processes(self, true);
      apply(self, E::stopped);
      break;
    }
    refuse(self, sandbox_waiter::goal::terminated, *x.failure);
    data.retrying = true;
    data.stop_retry = std::clamp(data.stop_retry * 2, data.options.stop_retry_first,
                                 data.options.stop_retry_longest);
    spdlog::warn("sandbox.stop_failed sandbox {}: {}; again in {} ms", data.record.id,
                 x.failure->message, data.stop_retry.count());
    self->delayed_send(self, data.stop_retry, stop_again{data.epoch});
    return answer_waiters(self);
  default:
    break;
  }
  converge(self);
}

void on_verb_overdue(self_pointer self, std::uint64_t epoch) {
  auto& data = self->state;
  if (epoch != data.epoch || !data.effect) {
    if (epoch == data.start) {
      data.start = 0;
      converge(self);
    }
    return;
  }
  error silent{errc::unavailable,
               fmt::format("no answer within {} ms", data.options.backend_timeout.count())};
  if (data.record.is == S::stopping)
    return on_verb_done(self, {epoch, silent, {}});
  if (epoch == data.start)
    data.start = 0;
  data.failure = silent;
  auto cause = data.record.is == S::starting ? end_cause::start_failed : end_cause::infrastructure;
  fail(self, {cause, fmt::format("while {}: {}", data.record.is, silent.message)});
}

void on_stop_again(self_pointer self, std::uint64_t epoch) {
  auto& data = self->state;
  if (epoch != data.epoch || !data.retrying)
    return;
  data.retrying = false;
  converge(self);
}

} // namespace dsec::sandbox_parts
