#include "sdk/embed/handles.hpp"
#include "state/recall.hpp"

namespace dsec {

namespace {

/// Asks the sandbox for an `Answer` and pays `T` made from it.
template <class T, class Answer, class Message, class Convert>
future<T> ask(const std::shared_ptr<runtime_core>& core, const sandbox_id& id, Message message,
              Convert convert) {
  return core->ask<T>([=](requester* self, const debt<T>& owed) {
    ask_sandbox<Answer>(
      self, id, message, [=](const Answer& x) { owed.pay(convert(x)); },
      [=](const error& e, const sandbox_info*) { owed.pay(e); });
  });
}

result<void> nothing(const ack&) {
  return {};
}

template <class T, class Convert>
future<T> ask_file(const std::shared_ptr<runtime_core>& core, const sandbox_id& id,
                   file_request request, Convert convert) {
  return ask<T, file_reply_ptr>(
    core, id, file_message{std::make_shared<const file_request>(std::move(request))}, convert);
}

/// A step of a sandbox that has ended answers what was recorded, else that the sandbox has ended.
void recall_step(requester* self, const sandbox_id& id, const exec_message& message,
                 const error& over, const debt<exec_result>& owed) {
  self->request(self->state.journal, caf::infinite, load_step{id, *message.spec->step})
    .then([=](const step_record_ptr& x) { owed.pay(recall(*x, request_digest(*message.spec))); },
          [=](const caf::error&) { owed.pay(over); });
}

future<exec_result> ask_exec(const std::shared_ptr<runtime_core>& core, const sandbox_id& id,
                             const exec_message& message) {
  return core->ask<exec_result>([=](requester* self, const debt<exec_result>& owed) {
    ask_sandbox<exec_result_ptr>(
      self, id, message, [=](const exec_result_ptr& x) { owed.pay(*x); },
      [=](const error& e, const sandbox_info* tombstone) {
        if (tombstone && message.spec->step)
          recall_step(self, id, message, e, owed);
        else
          owed.pay(e);
      });
  });
}

} // namespace

const sandbox_id& sandbox::id() const {
  return state_->id;
}

future<exec_result> sandbox::exec(exec_spec spec) const {
  return start(std::move(spec)).result();
}

running_exec sandbox::start(exec_spec spec, std::shared_ptr<output_sink> sink) const {
  running_exec x;
  x.state_ = std::make_shared<running_exec::state>();
  x.state_->core = state_->core;
  x.state_->sandbox = state_->id;
  x.state_->ticket = state_->core->next_ticket();
  if (auto valid = validate(spec); !valid) {
    x.state_->result.fulfill(about(state_->id, valid.error()));
    return x;
  }
  exec_message message{std::make_shared<const exec_spec>(std::move(spec)), std::move(sink),
                       x.state_->ticket};
  x.state_->result = ask_exec(state_->core, state_->id, message);
  return x;
}

future<std::string> sandbox::read(std::string path, std::uint64_t bytes_max) const {
  return ask_file<std::string>(state_->core, state_->id, file_read{std::move(path), bytes_max},
                               [](const file_reply_ptr& x) {
                                 return result<std::string>{x->bytes};
                               });
}

future<void> sandbox::write(std::string path, std::string bytes, write_options options) const {
  return ask_file<void>(state_->core, state_->id,
                        file_write{std::move(path), std::move(bytes), options.mode, true, false,
                                   options.atomic},
                        [](const file_reply_ptr&) { return result<void>{}; });
}

future<void> sandbox::set_clocks(sandbox_clocks clocks) const {
  return ask<void, ack>(state_->core, state_->id, dsec::set_clocks{clocks}, nothing);
}

future<std::vector<directory_entry>> sandbox::list(std::string path) const {
  return ask_file<std::vector<directory_entry>>(
    state_->core, state_->id, file_list{std::move(path)},
    [](const file_reply_ptr& x) { return result<std::vector<directory_entry>>{x->entries}; });
}

future<file_status> sandbox::stat(std::string path) const {
  return ask_file<file_status>(state_->core, state_->id, file_stat{std::move(path)},
                               [](const file_reply_ptr& x) {
                                 return result<file_status>{x->status};
                               });
}

future<void> sandbox::pause(bool reclaim) const {
  return ask<void, reclaim_report>(state_->core, state_->id, pause_request{reclaim, false},
                                   [](const reclaim_report&) { return result<void>{}; });
}

future<void> sandbox::resume() const {
  return ask<void, ack>(state_->core, state_->id, resume_request{}, nothing);
}

future<void> sandbox::stop() const {
  return state_->core->ask<void>([id = state_->id](requester* self, const debt<void>& owed) {
    ask_sandbox<ack>(
      self, id, stop_request{}, [=](const ack&) { owed.pay({}); },
      [=](const error& e, const sandbox_info* tombstone) {
        // One that has ended is stopped already.
        owed.pay(tombstone ? result<void>{} : result<void>{e});
      });
  });
}

future<sandbox_info> sandbox::info() const {
  return state_->core->ask<sandbox_info>(
    [id = state_->id](requester* self, const debt<sandbox_info>& owed) {
      ask_sandbox<sandbox_info>(
        self, id, info_request{}, [=](const sandbox_info& x) { owed.pay(x); },
        [=](const error& e, const sandbox_info* tombstone) {
          owed.pay(tombstone ? result<sandbox_info>{*tombstone} : result<sandbox_info>{e});
        });
    });
}

future<sandbox_stats> sandbox::stats() const {
  return ask<sandbox_stats, sandbox_stats>(state_->core, state_->id, stats_request{},
                                           [](const sandbox_stats& x) {
                                             return result<sandbox_stats>{x};
                                           });
}

future<std::vector<step_record>> sandbox::trajectory() const {
  return state_->core->ask<std::vector<step_record>>(
    [id = state_->id](requester* self, const debt<std::vector<step_record>>& owed) {
      self->request(self->state.journal, caf::infinite, load_sandbox{id})
        .then([=](const sandbox_history_ptr& x) { owed.pay(x->steps); },
              [=](const caf::error& e) { owed.pay(about(id, from_caf(e, "the journal"))); });
    });
}

future<step_record> sandbox::step(std::uint64_t step) const {
  return state_->core->ask<step_record>(
    [id = state_->id, step](requester* self, const debt<step_record>& owed) {
      self->request(self->state.journal, caf::infinite, load_step{id, step})
        .then([=](const step_record_ptr& x) { owed.pay(*x); },
              [=](const caf::error& e) { owed.pay(about(id, from_caf(e, "the journal"))); });
    });
}

future<exec_result> running_exec::result() const {
  return state_->result;
}

void running_exec::cancel() {
  state_->core->post([id = state_->sandbox, ticket = state_->ticket](requester* self) {
    with_sandbox(
      self, id, [=](sandbox_actor x) { self->send(x, cancel_exec{ticket}); },
      [](const error&, const sandbox_info*) {});
  });
}

void running_exec::signal(int number) {
  state_->core->post([id = state_->sandbox, ticket = state_->ticket, number](requester* self) {
    with_sandbox(
      self, id,
      [=](sandbox_actor x) {
        self->send(x, signal_exec{ticket, number});
      },
      [](const error&, const sandbox_info*) {});
  });
}

} // namespace dsec
