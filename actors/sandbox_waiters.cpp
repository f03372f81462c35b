#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

using goal = sandbox_waiter::goal;

bool reached(goal x, sandbox_state is) {
  using S = sandbox_state;
  switch (x) {
  case goal::up:
    return is == S::running || is == S::pausing || is == S::paused || is == S::reclaiming
           || is == S::reclaimed || is == S::resuming;
  case goal::resumed:
    return is == S::running;
  case goal::paused:
    return is == S::paused || is == S::reclaimed;
  case goal::reclaimed:
    return is == S::reclaimed;
  case goal::terminated:
    return is == S::terminated;
  }
  return false;
}

/// Its start has failed and what there is of it is being removed, for the first time.
bool clearing_a_failed_start(const sandbox_data& data) {
  auto cause = data.fault ? data.fault->cause : data.record.cause;
  return cause == end_cause::start_failed && data.record.is != sandbox_state::terminated
         && !data.retrying;
}

} // namespace

void wait(self_pointer self, goal heading, caf::response_promise promise) {
  self->state.waiters.push_back({heading, std::move(promise)});
}

void answer_waiters(self_pointer self) {
  auto& data = self->state;
  auto over = ended(data);
  auto waiting = std::exchange(data.waiters, {});
  for (auto& x : waiting) {
    if (reached(x.heading, data.record.is)) {
      if (x.heading == goal::paused || x.heading == goal::reclaimed)
        x.promise.deliver(data.reclaimed);
      else
        x.promise.deliver(ack{});
    } else if (x.heading == goal::up && clearing_a_failed_start(data)) {
      // Whoever is told of the failure finds its place free, and its name.
      data.waiters.push_back(std::move(x));
    } else if (over && x.heading != goal::terminated) {
      // How its start failed is for whoever waits for the start; for the rest it has ended.
      x.promise.deliver(to_caf(x.heading == goal::up ? *over : *ended_already(data)));
    } else {
      data.waiters.push_back(std::move(x));
    }
  }
}

void overtake(self_pointer self, std::initializer_list<goal> goals, std::string_view by) {
  for (auto x : goals)
    refuse(self, x,
           {errc::invalid_state,
            fmt::format("sandbox {}: overtaken by a later {}", self->state.record.id, by)});
}

void refuse(self_pointer self, goal heading, const error& cause) {
  auto& waiters = self->state.waiters;
  for (auto& x : waiters)
    if (x.heading == heading)
      x.promise.deliver(to_caf(cause));
  std::erase_if(waiters, [&](const sandbox_waiter& x) { return x.heading == heading; });
}

} // namespace dsec::sandbox_parts
