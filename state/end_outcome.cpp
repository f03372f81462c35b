#include "state/end_outcome.hpp"

namespace dsec {

outcome outcome_of_end(const sandbox_record& record, bool ran) {
  outcome x;
  x.cause = record.detail;
  switch (record.cause) {
  case end_cause::none:
  case end_cause::stopped:
    x.kind = outcome_kind::sandbox_stopped;
    if (x.cause.empty())
      x.cause = "a stop was asked for";
    break;
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

exec_result lost_with(const sandbox_record& record) {
  exec_result x;
  x.outcome = outcome_of_end(record, true);
  x.outcome.cause += "; what it had written went with the sandbox";
  return x;
}

bool ended_with_its_sandbox(outcome_kind x) {
  return end_told_by(x).has_value();
}

std::optional<end_cause> end_told_by(outcome_kind x) {
  switch (x) {
  case outcome_kind::sandbox_stopped:
    return end_cause::lease_expired;
  case outcome_kind::self_inflicted:
    return end_cause::self_inflicted;
  case outcome_kind::expired:
    return end_cause::time_to_live;
  case outcome_kind::budget_spent:
    return end_cause::rollout_budget;
  default:
    return std::nullopt;
  }
}

errc refusal_code(end_cause x) {
  return x == end_cause::time_to_live || x == end_cause::rollout_budget ? errc::expired
                                                                        : errc::invalid_state;
}

} // namespace dsec
