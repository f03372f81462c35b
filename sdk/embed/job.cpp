#include "sdk/embed/handles.hpp"

#include <algorithm>

namespace dsec {

namespace {

/// Sends `message` to the job and hands the answer to `use`, failures to `fail`. An actor that has
/// died since it was found is looked for once more: it is started anew. In the requester.
template <class Answer, class Message>
void ask_job(requester* self, const job_id& id, Message message,
             std::function<void(const Answer&)> use, std::function<void(const error&)> fail,
             int attempt = 0) {
  self->request(self->state.jobs.at(id), caf::infinite, message)
    .then([use](const Answer& x) { use(x); },
          [=](const caf::error& e) {
            if (e != caf::sec::request_receiver_down || attempt > 0)
              return fail(from_caf(e, "job " + id.str()));
            self->request(self->state.cluster, caf::infinite, find_job{id})
              .then(
                [=](const job_actor& found) {
                  self->state.jobs[id] = found;
                  ask_job<Answer>(self, id, message, use, fail, attempt + 1);
                },
                [=](const caf::error& why) { fail(from_caf(why, "the cluster")); });
          });
}

template <class T, class Answer, class Message, class Convert>
future<T>
ask(const std::shared_ptr<runtime_core>& core, const job_id& id, Message message, Convert convert) {
  return core->ask<T>([=](requester* self, const debt<T>& owed) {
    ask_job<Answer>(
      self, id, message, [=](const Answer& x) { owed.pay(convert(x)); },
      [=](const error& e) { owed.pay(e); });
  });
}

result<void> nothing(const ack&) {
  return {};
}

} // namespace

const job_id& job::id() const {
  return state_->id;
}

future<sandbox> job::create(create_options options) const {
  std::vector<create_options> one;
  one.push_back(std::move(options));
  return create_batch(std::move(one)).front();
}

std::vector<future<sandbox>> job::create_batch(std::vector<create_options> options) const {
  using debts = std::vector<debt<sandbox>>;
  std::vector<future<sandbox>> answers(options.size());
  auto owed = std::make_shared<debts>();
  dsec::create_batch batch;
  for (std::size_t i = 0; i < options.size(); ++i) {
    owed->emplace_back(state_->core, answers[i]);
    batch.items.push_back({std::move(options[i].idempotency_key), std::move(options[i].environment),
                           options[i].clocks});
  }

  auto fail_all = [owed](const error& e) {
    for (const auto& x : *owed)
      x.pay(e);
  };
  auto core = state_->core;
  auto id = state_->id;
  core->post([=, batch = std::move(batch)](requester* self) {
    ask_job<create_reply_ptr>(
      self, id, batch,
      [=](const create_reply_ptr& reply) {
        for (std::size_t k = 0; k < owed->size(); ++k) {
          auto debt = (*owed)[k];
          const auto& made = reply->sandboxes[k];
          if (!made) {
            debt.pay(made.error());
            continue;
          }
          sandbox handle;
          handle.state_ = std::make_shared<sandbox::state>();
          handle.state_->core = core;
          handle.state_->id = *made;
          ask_sandbox<ack>(
            self, *made, await_running{}, [=](const ack&) { debt.pay(handle); },
            [=](const error& e, const sandbox_info*) { debt.pay(e); });
        }
      },
      fail_all);
  });
  return answers;
}

future<preempt_report> job::preempt(preempt_mode mode) const {
  return ask<preempt_report, preempt_report>(state_->core, state_->id, preempt_job{mode},
                                             [](const preempt_report& x) {
                                               return result<preempt_report>{x};
                                             });
}

future<void> job::resume() const {
  return ask<void, ack>(state_->core, state_->id, resume_request{}, nothing);
}

future<void> job::close() const {
  return ask<void, ack>(state_->core, state_->id, stop_request{}, nothing);
}

future<std::vector<sandbox_info>> job::list(bool with_ended) const {
  return ask<std::vector<sandbox_info>, inventory_ptr>(
    state_->core, state_->id, inventory_query{state_->id, with_ended},
    [](const inventory_ptr& x) { return result<std::vector<sandbox_info>>{x->sandboxes}; });
}

} // namespace dsec
