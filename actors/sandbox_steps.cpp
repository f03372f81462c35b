// What the actor does about steps that no request of its own is under way for: those that are
// recorded, and those that an earlier life began.

#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"
#include "state/recall.hpp"

#include <utility>

namespace dsec::sandbox_parts {

void recall_step(self_pointer self, std::uint64_t step, std::string digest,
                 caf::typed_response_promise<exec_result_ptr> answer) {
  auto& data = self->state;
  self->request(data.services.journal, caf::infinite, load_step{data.record.id, step})
    .then(
      [self, answer, digest = std::move(digest)](const step_record_ptr& x) mutable {
        auto again = recall(*x, digest);
        if (again)
          answer.deliver(exec_result_ptr{std::make_shared<const exec_result>(*std::move(again))});
        else
          answer.deliver(to_caf(again.error()));
      },
      [self, answer](caf::error& cause) mutable {
        auto why = from_caf(cause, "the journal");
        auto over = ended(self->state);
        answer.deliver(to_caf(why.code == errc::not_found && over ? *over : why));
      });
}

void finish_begun_steps(self_pointer self) {
  auto& data = self->state;
  auto batch = std::make_shared<write_batch>();
  for (auto& [step, known] : data.steps) {
    if (known.done || data.execs.contains(step))
      continue;
    known.done = true;
    exec_result unknown;
    unknown.outcome = outcome_of_end(data.record, true);
    note_step_ended(self, step, unknown.outcome);
    batch->steps.push_back({data.record.id, step, step, known.digest, std::move(unknown)});
  }
  if (batch->steps.empty())
    return;
  carry_notes(data, *batch);
  self->request(data.services.journal, caf::infinite, write_batch_ptr{batch})
    .then(
      [self, batch](ack) {
        auto& now = self->state;
        now.steps_recorded += batch->steps.size();
        for (std::size_t i = 0; i < batch->steps.size(); ++i)
          self->send(now.services.node, step_recorded{now.record.id});
      },
      [self](caf::error& cause) { journal_failed(self, from_caf(cause, "the journal")); });
}

} // namespace dsec::sandbox_parts
