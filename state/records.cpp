#include "state/records.hpp"

namespace dsec {

std::string_view to_string(preempt_mode x) {
  switch (x) {
  case preempt_mode::until_request:
    return "until_request";
  case preempt_mode::until_resume:
    return "until_resume";
  }
  return "unknown";
}

std::string_view to_string(job_state x) {
  switch (x) {
  case job_state::active:
    return "active";
  case job_state::preempted:
    return "preempted";
  case job_state::closed:
    return "closed";
  }
  return "unknown";
}

std::string_view to_string(end_cause x) {
  switch (x) {
  case end_cause::none:
    return "none";
  case end_cause::stopped:
    return "stopped";
  case end_cause::lease_expired:
    return "lease_expired";
  case end_cause::start_failed:
    return "start_failed";
  case end_cause::self_inflicted:
    return "self_inflicted";
  case end_cause::infrastructure:
    return "infrastructure";
  case end_cause::time_to_live:
    return "time_to_live";
  case end_cause::rollout_budget:
    return "rollout_budget";
  case end_cause::idle:
    return "idle";
  }
  return "unknown";
}

} // namespace dsec
