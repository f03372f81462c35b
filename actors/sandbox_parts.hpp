#pragma once

#include "actors/sandbox.hpp"

/// How the source files of the sandbox actor call one another.

namespace dsec::sandbox_parts {

using self_pointer = sandbox_inside::stateful_pointer<sandbox_data>;

// -- sandbox_converge.cpp: what is wanted and what is

/// Moves one step towards what is wanted, if none is under way; then answers who can be answered.
void converge(self_pointer self);

/// It is broken or gone; the tear-down follows by itself.
void fail(self_pointer self, sandbox_end end);

/// Nothing can be made durable: everybody is told, nothing more is started.
void journal_failed(self_pointer self, const error& cause);

/// invalid_state with the cause if it has ended or is about to, preempted if held; else the sandbox
/// heads for `running` and whoever waited for a pause is told that it was overtaken.
std::optional<error> demand_running(self_pointer self);

/// Set once nothing can run in it any more.
std::optional<error> ended(const sandbox_data& data);

sandbox_info info_of(const sandbox_data& data);

/// The one place that changes `record.is`.
void apply(self_pointer self, sandbox_event event);

/// Stopping, terminated or failed.
bool over(sandbox_state x);

// -- sandbox_probe.cpp: recovery and lost contact

/// Finds out what lives of the sandbox: adopts it, or learns how it ended.
void probe(self_pointer self);

/// Tells the node, once, that recovery is done with this sandbox.
void settled(self_pointer self);

void on_probe_done(self_pointer self, const probe_done& x);
void on_fate_done(self_pointer self, const fate_done& x);

// -- sandbox_completion.cpp: what the verbs of the backend report

void on_verb_done(self_pointer self, const verb_done& x);
void on_verb_overdue(self_pointer self, std::uint64_t epoch);
void on_stop_again(self_pointer self, std::uint64_t epoch);

// -- sandbox_effect.cpp: the verbs of the backend

/// Asks the backend for what the present state stands for. Its completion comes as `verb_done`.
void begin_effect(self_pointer self);

// -- sandbox_waiters.cpp

void wait(self_pointer self, sandbox_waiter::goal goal, caf::response_promise promise);

/// Answers those whose goal is reached or out of reach.
void answer_waiters(self_pointer self);

/// Answers those who wait for one of `goals` with `invalid_state`, "overtaken by".
void overtake(self_pointer self, std::initializer_list<sandbox_waiter::goal> goals,
              std::string_view by);

/// Answers those who wait for `goal` with `cause`.
void refuse(self_pointer self, sandbox_waiter::goal goal, const error& cause);

// -- sandbox_exec.cpp: execs and the trajectory

void request_exec(self_pointer self, const exec_message& x,
                  caf::typed_response_promise<exec_result_ptr> answer);
void start_execs(self_pointer self);
void on_exec_done(self_pointer self, const exec_done& x);
void cancel(self_pointer self, std::uint64_t ticket);

/// The sandbox has ended: every pending exec gets the outcome that its cause stands for.
void finish_execs(self_pointer self);

/// Whether one waits for the sandbox to run.
bool execs_wait(const sandbox_data& data);
/// Answers those with `cause`.
void refuse_waiting_execs(self_pointer self, const error& cause);
/// The sandbox lives after all: what was under way is joined again.
void rejoin_execs(self_pointer self);

// -- sandbox_file.cpp: files and counters

caf::result<file_reply_ptr> request_file(self_pointer self, const file_message& x);
caf::result<sandbox_stats> request_stats(self_pointer self);
void on_file_done(self_pointer self, const file_done& x);
void on_stats_done(self_pointer self, const stats_done& x);
void on_answers_due(self_pointer self);
bool files_wait(const sandbox_data& data);
void refuse_waiting_files(self_pointer self, const error& cause);
void start_files(self_pointer self);
void finish_files(self_pointer self);

// -- sandbox_call.cpp

/// `spec` with the environment's defaults filled in.
exec_spec complete(const environment& from, exec_spec spec);

} // namespace dsec::sandbox_parts
