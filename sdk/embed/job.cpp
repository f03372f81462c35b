#include "sdk/embed/handles.hpp"

#include <algorithm>

namespace dsec {

namespace {

template <class T, class Answer, class Message, class Convert>
future<T>
ask(const std::shared_ptr<runtime_core>& core, const job_id& id, Message message, Convert convert) {
  return core->ask<T>([=](requester* self, const debt<T>& owed) {
    auto i = self->state.jobs.find(id);
    if (i == self->state.jobs.end())
      return owed.pay(error{errc::not_found, "job " + id.str() + " was closed"});
    self->request(i->second, caf::infinite, message)
      .then([=](const Answer& x) { owed.pay(convert(x)); },
            [=](const caf::error& e) { owed.pay(from_caf(e, "job " + id.str())); });
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
    batch.items.push_back(
      {std::move(options[i].idempotency_key), std::move(options[i].environment)});
  }

  auto fail_all = [owed](const error& e) {
    for (const auto& x : *owed)
      x.pay(e);
  };
  auto core = state_->core;
  auto id = state_->id;
  core->post([=, batch = std::move(batch)](requester* self) {
    auto i = self->state.jobs.find(id);
    if (i == self->state.jobs.end())
      return fail_all({errc::not_found, "job " + id.str() + " was closed"});
    self->request(i->second, caf::infinite, batch)
      .then(
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
        [=](const caf::error& e) { fail_all(from_caf(e, "job " + id.str())); });
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
