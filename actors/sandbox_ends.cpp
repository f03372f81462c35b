#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <utility>

namespace dsec::sandbox_parts {

void end_as_told(self_pointer self, const outcome& x) {
  fail(self, {end_told_by(x.kind).value(), x.cause});
}

exec_result as_recorded(const sandbox_data& data, exec_result x) {
  if (ended_with_its_sandbox(x.outcome.kind) && over(data.record.is))
    x.outcome = outcome_of_end(data.record, true);
  return x;
}

void answer_lost(self_pointer self, caf::response_promise promise, const error& why) {
  auto& data = self->state;
  if (data.broken)
    return promise.deliver(to_caf(*data.broken));
  if (over(data.shown))
    return promise.deliver(to_caf(*ended(data)));
  data.lost.push_back({std::move(promise), why});
  if (!data.probing && !ended(data))
    probe(self);
}

void refuse_lost(sandbox_data& data) {
  for (auto& x : std::exchange(data.lost, {}))
    x.promise.deliver(to_caf(x.why));
}

void finish_lost(sandbox_data& data, const error& cause) {
  for (auto& x : std::exchange(data.lost, {}))
    x.promise.deliver(to_caf(cause));
}

} // namespace dsec::sandbox_parts
