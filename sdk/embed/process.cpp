#include "sdk/embed/handles.hpp"
#include "state/end_outcome.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec {

namespace {

/// Asks the sandbox for something about its processes and pays `T` made from the reply.
template <class T, class Convert>
future<T> ask_process(const std::shared_ptr<runtime_core>& core, const sandbox_id& id,
                      process_request request, Convert convert) {
  process_message message{std::make_shared<const process_request>(std::move(request))};
  return core->ask<T>([=](requester* self, const debt<T>& owed) {
    ask_sandbox<process_reply_ptr>(
      self, id, message, [=](const process_reply_ptr& x) { owed.pay(convert(*x)); },
      [=](const error& e, const sandbox_info*) { owed.pay(e); });
  });
}

result<void> nothing(const process_reply&) {
  return {};
}

/// A process that went with its sandbox has that end as its outcome.
void look_what_went_along(requester* self, const sandbox_id& id, exec_id of, const error& over,
                          const debt<exec_result>& owed) {
  self->request(self->state.journal, caf::infinite, load_sandbox{id})
    .then(
      [=](const sandbox_history_ptr& x) {
        const auto& gone = x->record.processes;
        if (std::ranges::find(gone, of) != gone.end())
          owed.pay(lost_with(x->record));
        else
          owed.pay(over);
      },
      [=](const caf::error&) { owed.pay(over); });
}

} // namespace

future<process> sandbox::spawn(process_spec spec) const {
  if (auto valid = validate(spec); !valid) {
    future<process> refused;
    refused.fulfill(valid.error());
    return refused;
  }
  return ask_process<process>(state_->core, state_->id, process_start{0, std::move(spec)},
                              [box = *this](const process_reply& x) {
                                return result<process>{box.find_process(x.processes.front().id)};
                              });
}

future<std::vector<process_info>> sandbox::processes() const {
  return ask_process<std::vector<process_info>>(
    state_->core, state_->id, process_list{},
    [](const process_reply& x) { return result<std::vector<process_info>>{x.processes}; });
}

process sandbox::find_process(exec_id id) const {
  process x;
  x.state_ = std::make_shared<process::state>(process::state{state_->core, state_->id, id});
  return x;
}

future<process> sandbox::find_process(std::string name) const {
  return ask_process<process>(
    state_->core, state_->id, process_list{},
    [box = *this, name = std::move(name)](const process_reply& x) -> result<process> {
      const process_info* best = nullptr;
      for (const auto& each : x.processes)
        if (each.name == name && !name.empty()
            && (!best || !each.outcome || (best->outcome && each.ended_ms >= best->ended_ms)))
          best = &each;
      if (!best)
        return error{errc::not_found,
                     fmt::format("process '{}' of {}: there is none of this name", name, box.id())};
      return box.find_process(best->id);
    });
}

exec_id process::id() const {
  return state_->id;
}

future<exec_result> process::wait() const {
  process_message message{std::make_shared<const process_request>(process_wait{state_->id})};
  return state_->core->ask<exec_result>([id = state_->sandbox, of = state_->id,
                                         message](requester* self, const debt<exec_result>& owed) {
    ask_sandbox<process_reply_ptr>(
      self, id, message, [=](const process_reply_ptr& x) { owed.pay(x->outcome); },
      [=](const error& e, const sandbox_info* tombstone) {
        if (tombstone)
          look_what_went_along(self, id, of, e, owed);
        else
          owed.pay(e);
      });
  });
}

process_attachment process::attach(std::shared_ptr<output_sink> sink, attach_from from) const {
  process_attachment x;
  x.state_ = std::make_shared<process_attachment::state>();
  x.state_->core = state_->core;
  x.state_->sandbox = state_->sandbox;
  x.state_->ticket = state_->core->next_ticket();
  x.state_->ended =
    ask_process<void>(state_->core, state_->sandbox,
                      process_attach{state_->id, from, std::move(sink), x.state_->ticket}, nothing);
  return x;
}

future<void> process::write(std::string bytes, bool end) const {
  return ask_process<void>(state_->core, state_->sandbox,
                           process_input{state_->id, std::move(bytes), end}, nothing);
}

future<void> process::resize(terminal_size size) const {
  return ask_process<void>(state_->core, state_->sandbox, process_resize{state_->id, size},
                           nothing);
}

future<void> process::signal(int number, bool tree) const {
  return ask_process<void>(state_->core, state_->sandbox, process_signal{state_->id, number, tree},
                           nothing);
}

future<void> process::kill() const {
  return ask_process<void>(state_->core, state_->sandbox, process_kill{state_->id}, nothing);
}

future<void> process::remove() const {
  return ask_process<void>(state_->core, state_->sandbox, process_remove{state_->id}, nothing);
}

future<void> process_attachment::ended() const {
  return state_->ended;
}

void process_attachment::detach() {
  ask_process<void>(state_->core, state_->sandbox, process_detach{state_->ticket}, nothing);
}

} // namespace dsec
