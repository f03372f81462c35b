#include "state/event.hpp"

namespace dsec {

std::string_view to_string(event_kind x) {
  switch (x) {
  case event_kind::created:
    return "created";
  case event_kind::running:
    return "running";
  case event_kind::paused:
    return "paused";
  case event_kind::reclaimed:
    return "reclaimed";
  case event_kind::resumed:
    return "resumed";
  case event_kind::exec_started:
    return "exec_started";
  case event_kind::exec_ended:
    return "exec_ended";
  case event_kind::process_started:
    return "process_started";
  case event_kind::process_ended:
    return "process_ended";
  case event_kind::failed:
    return "failed";
  case event_kind::stopped:
    return "stopped";
  }
  return "unknown";
}

job_event about(const sandbox_record& x, event_kind kind, std::int64_t at_ms) {
  job_event made;
  made.job = x.job;
  made.at_ms = at_ms;
  made.sandbox = x.id;
  made.index = x.index;
  made.kind = kind;
  made.cause = x.cause;
  made.detail = x.detail;
  return made;
}

} // namespace dsec
