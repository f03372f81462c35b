#include "backends/container/wire.hpp"
#include "sdk/front/convert.hpp"

#include <algorithm>

namespace dsec::wire {

namespace {

/// Enums stand in the schemas in the same order. What a newer program says is read as `unknown`.
template <class Enum, class Wire>
Enum known(Wire from, Enum last, Enum unknown) {
  auto number = static_cast<std::uint16_t>(from);
  return number > static_cast<std::uint16_t>(last) ? unknown : static_cast<Enum>(number);
}

} // namespace

void write(const job_event& from, EventRecord::Builder to) {
  to.setJob(from.job.str().c_str());
  to.setCursor(from.cursor);
  to.setAtMs(from.at_ms);
  to.setSandbox(from.sandbox.str().c_str());
  to.setIndex(from.index);
  to.setKind(static_cast<EventRecord::Kind>(from.kind));
  to.setExec(from.exec);
  to.setHasStep(from.step.has_value());
  to.setStep(from.step.value_or(0));
  if (from.outcome) {
    to.setHasOutcome(true);
    auto outcome = to.initOutcome();
    outcome.setKind(static_cast<Outcome::Kind>(from.outcome->kind));
    outcome.setCode(from.outcome->code);
    outcome.setLimitBytes(from.outcome->limit_bytes);
    outcome.setPeakBytes(from.outcome->peak_bytes);
    outcome.setCause(bytes(from.outcome->cause));
  }
  to.setCause(static_cast<SandboxRecord::Cause>(from.cause));
  to.setDetail(bytes(from.detail));
}

job_event read(EventRecord::Reader from) {
  job_event x;
  x.job = job_id{text(from.getJob())};
  x.cursor = from.getCursor();
  x.at_ms = from.getAtMs();
  x.sandbox = sandbox_id{text(from.getSandbox())};
  x.index = from.getIndex();
  x.kind = known(from.getKind(), event_kind_last, event_kind_last);
  x.exec = from.getExec();
  if (from.getHasStep())
    x.step = from.getStep();
  if (from.getHasOutcome()) {
    auto outcome = from.getOutcome();
    x.outcome = {known(outcome.getKind(), outcome_kind_last, outcome_kind::infrastructure),
                 outcome.getCode(), outcome.getLimitBytes(), outcome.getPeakBytes(),
                 text(outcome.getCause())};
  }
  x.cause = known(from.getCause(), end_cause_last, end_cause::infrastructure);
  x.detail = text(from.getDetail());
  return x;
}

} // namespace dsec::wire
