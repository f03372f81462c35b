#include "actors/sandbox_parts.hpp"

#include <utility>

namespace dsec::sandbox_parts {

namespace {

/// The end of the sandbox that only its supervisor gives its commands as their outcome.
end_cause end_said_by(outcome_kind x) {
  switch (x) {
  case outcome_kind::self_inflicted:
    return end_cause::self_inflicted;
  case outcome_kind::expired:
    return end_cause::time_to_live;
  case outcome_kind::budget_spent:
    return end_cause::rollout_budget;
  default:
    return end_cause::none;
  }
}

} // namespace

outcome outcome_of_end(const sandbox_record& record, bool ran) {
  outcome x;
  x.cause = record.detail;
  switch (record.cause) {
  case end_cause::none:
  case end_cause::stopped:
  case end_cause::lease_expired:
  case end_cause::idle:
    x.kind = outcome_kind::sandbox_stopped;
    break;
  case end_cause::time_to_live:
    x.kind = outcome_kind::expired;
    break;
  case end_cause::rollout_budget:
    x.kind = outcome_kind::budget_spent;
    break;
  case end_cause::self_inflicted:
    x.kind = outcome_kind::self_inflicted;
    break;
  case end_cause::start_failed:
  case end_cause::infrastructure:
    x.kind = outcome_kind::infrastructure;
    if (ran)
      x.cause.insert(0, "effect unknown: ");
    break;
  }
  return x;
}

bool waits_for_the_end(self_pointer self, pending_exec& x, const exec_result& known) {
  auto cause = end_said_by(known.outcome.kind);
  if (cause == end_cause::none || over(self->state.shown))
    return false;
  x.said = known;
  x.at = pending_exec::phase::orphaned;
  fail(self, {cause, known.outcome.cause});
  return true;
}

} // namespace dsec::sandbox_parts
