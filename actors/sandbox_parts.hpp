#pragma once

#include "actors/sandbox.hpp"
#include "state/end_outcome.hpp"

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

/// The same for what does not wait for the start, which is not told how that failed.
std::optional<error> ended_already(const sandbox_data& data);

sandbox_info info_of(const sandbox_data& data);

/// The one place that changes `record.is`.
void apply(self_pointer self, sandbox_event event);

/// Stopping, terminated or failed.
bool over(sandbox_state x);

std::int64_t wall_ms(self_pointer self);

// -- sandbox_probe.cpp: recovery and lost contact

/// Finds out what lives of the sandbox: adopts it, or learns how it ended.
void probe(self_pointer self);

/// Its start has failed, of `why` unless it was there for long enough to end by itself, as of a
/// clock.
void learn_why_it_did_not_start(self_pointer self, const error& why);

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

/// The sandbox has ended: every pending exec gets the outcome that its cause stands for. Those that
/// run are left to the backend, which says as it stops what they wrote, unless `running_too`: it
/// has stopped.
void finish_execs(self_pointer self, bool running_too);

/// Whether one waits for the sandbox to run.
bool execs_wait(const sandbox_data& data);
/// Answers those with `cause`.
void refuse_waiting_execs(self_pointer self, const error& cause);
/// What of `running` an earlier life started for a caller that went with it, and no step records,
/// is cancelled, and its end told.
void end_abandoned_execs(self_pointer self, const std::vector<exec_id>& running);
/// The sandbox lives after all: what was under way is joined again.
void rejoin_execs(self_pointer self);
/// The node process ends: what runs and no step records is answered with node_lost.
void lose_execs(self_pointer self);

// -- sandbox_steps.cpp

/// Answers with what is stored of a step: its result, or that it diverges, or that it was not begun
/// before the sandbox ended.
void recall_step(self_pointer self, std::uint64_t step, std::string digest,
                 caf::typed_response_promise<exec_result_ptr> answer);

/// Steps that an earlier life began and that nobody has asked for since get an outcome as well.
void finish_begun_steps(self_pointer self);

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

/// From now the backend has `backend_timeout` to answer `ticket`.
void expect(self_pointer self, std::uint64_t ticket);

// -- sandbox_process.cpp: processes, which are the backend's to keep

caf::result<process_reply_ptr> request_process(self_pointer self, const process_message& x);
void on_process_done(self_pointer self, const process_done& x);
void on_process_overdue(self_pointer self, std::uint64_t ticket);

/// Asks the backend for what it can be asked for now.
void start_processes(self_pointer self);

/// Whether something that thaws waits for the sandbox to run.
bool processes_wait(const sandbox_data& data);
/// Answers those with `cause`.
void refuse_waiting_processes(self_pointer self, const error& cause);

/// Whether a process lives, may live, or is about to be used.
bool processes_live(const sandbox_data& data);

/// The sandbox was found: which processes it has is learnt anew.
void look_for_processes(self_pointer self);

/// The sandbox has ended, as with `finish_execs`.
void finish_processes(self_pointer self, bool running_too);

/// Answers all who wait with `cause`.
void refuse_processes(self_pointer self, const error& cause);

// -- sandbox_clocks.cpp

caf::result<ack> request_clocks(self_pointer self, const set_clocks& x);

/// The record is durable with these clocks.
void clocks_written(self_pointer self, std::uint64_t version, const sandbox_clocks& written);

/// Tells the backend what is durable and it does not know; answers those who wait for that.
void tell_clocks(self_pointer self);
void on_clocks_done(self_pointer self, const clocks_done& x);

/// What was told may have been lost.
void forget_told_clocks(sandbox_data& data);

/// Answers all who wait with `cause`.
void refuse_clocks(self_pointer self, const error& cause);

/// To be called whenever something begins or ends: the idle clock runs while nothing is under way.
void watch_idle(self_pointer self);
void on_idle_due(self_pointer self, const idle_due& x);
void on_idle_look(self_pointer self, const idle_look& x);

// -- sandbox_ends.cpp: what the end of a sandbox and of its commands say of each other

/// `x`, which ended_with_its_sandbox, tells that dsec-init has ended the sandbox: it heads for that
/// end. Whoever is owed `x` gets it once the end is durable, so that who has the answer finds the
/// sandbox as ended as it says.
void end_as_told(self_pointer self, const outcome& x);

/// What was told of a command, with the end of the sandbox as the record says it.
exec_result as_recorded(const sandbox_data& data, exec_result x);

/// The backend could not answer, because of `why`. If that is because the sandbox has ended, its
/// end is the answer, else `why`. It may have to be found out.
void answer_lost(self_pointer self, caf::response_promise promise, const error& why);

/// The sandbox lives, so that it was for another reason.
void refuse_lost(sandbox_data& data);

/// Answers all of them with `cause`.
void finish_lost(sandbox_data& data, const error& cause);

// -- sandbox_events.cpp: what the job's events tell. An event goes into the batch that makes
// durable what it tells, or, where nothing else is written, into one that nobody waits for.

/// `x` begins: its start is told once, whatever is asked of it again. Of a recorded one whoever
/// calls this sends it, of another it is sent before long.
void note_exec_started(self_pointer self, pending_exec& x);

/// How it ended; without `how` it never ran, and `detail` says why. Nothing if its start was not
/// told. Sent as the start is.
void note_exec_ended(self_pointer self, const pending_exec& x, const outcome* how,
                     std::string detail = {});

/// The same of a step that an earlier life began.
void note_step_ended(self_pointer self, std::uint64_t step, const outcome& how);

/// A process that has started; once, whoever learns it how often.
void note_process_started(self_pointer self, exec_id id);

/// Once, whoever learns it how often, also over restarts: nothing if its start was not told, or its
/// end was. Without `how` it is unknown.
void note_process_ended(self_pointer self, exec_id id, std::optional<outcome> how);

/// What the record says and the events do not.
std::optional<event_kind> untold(const sandbox_record& x);

/// Puts the record into `batch`, and what is to be told of it.
void write_record(self_pointer self, write_batch& batch);

/// Puts what was noted into `batch`, which is sent next.
void carry_notes(sandbox_data& data, write_batch& batch);

/// Sends what was noted, if anything.
void send_notes(self_pointer self);

std::int64_t wall_ms(self_pointer self);

// -- sandbox_call.cpp

/// `spec` with the environment's defaults filled in.
exec_spec complete(const environment& from, exec_spec spec);

} // namespace dsec::sandbox_parts
