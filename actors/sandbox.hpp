#pragma once

#include "actors/effects.hpp"
#include "actors/noted_output.hpp"
#include "actors/stream_watch.hpp"
#include "actors/wiring.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec {

struct sandbox_options {
  /// How long the backend may take over one verb before it is a fault, and over one question
  /// before it is answered with unavailable.
  std::chrono::milliseconds backend_timeout{60'000};
  /// Execs and file operations that may be pending at once.
  std::size_t pending_max = 256;
  /// First and longest wait before a failed tear-down is tried again; doubled in between.
  std::chrono::milliseconds stop_retry_first{200};
  std::chrono::milliseconds stop_retry_longest{10'000};
  /// Added to the actor clock to tell wall-clock time.
  std::int64_t wall_offset_ms = 0;
};

/// How a sandbox actor comes to its record.
enum class sandbox_origin {
  created,   ///< Just recorded; nothing of it exists.
  recovered, ///< From the store: whatever exists of it is to be found.
  restarted, ///< The same within one process: a start may be under way as well.
  rebooted,  ///< From the store, but the machine was restarted since: nothing of it exists.
};

struct sandbox_seed {
  sandbox_record record;
  sandbox_origin origin = sandbox_origin::created;
  /// Its trajectory, without outputs.
  std::vector<step_record> steps;
  /// Ids of unrecorded execs start here. No other life of this sandbox ever used them.
  exec_id first_exec = 0;
};

struct sandbox_services {
  node_inside node;
  journal_actor journal;
  reclaimer_actor reclaimer;
  effects kernel;
};

/// What was asked of a sandbox and is answered once a state is reached.
struct sandbox_waiter {
  enum class goal { up, resumed, paused, reclaimed, terminated };

  goal heading = goal::up;
  caf::response_promise promise;
};

/// One exec that was asked for and is not yet answered.
struct pending_exec {
  enum class phase {
    recording, ///< Its step is being made durable.
    queued,    ///< Waits for the sandbox to run.
    running,
    orphaned,  ///< Contact was lost; whether the sandbox lives is being found out.
    finishing, ///< Its outcome is being made durable.
  };

  phase at = phase::queued;
  std::shared_ptr<exec_call> call;
  std::shared_ptr<noted_output> noted; ///< Of a streamed one: what its caller has seen.
  std::string digest;
  std::uint64_t attempt = 0;
  caf::actor_clock::time_point began{}; ///< When the backend was asked first.
  bool told = false;                    ///< Its start is, or will be, among the job's events.
  std::optional<exec_result> said;      ///< Its outcome, which waits for the end that it tells of.
  bool cancelled = false;
  bool abandoned = false; ///< Of an earlier life, whose caller went with it.
  std::vector<caf::typed_response_promise<exec_result_ptr>> answers;
  std::vector<std::uint64_t> tickets;
};

struct pending_file {
  bool started = false;
  std::shared_ptr<const file_request> request;
  caf::typed_response_promise<file_reply_ptr> answer;
  std::shared_ptr<stream_watch> watch; ///< Of a tree that has been started.
};

/// Something that was asked about processes and is not yet answered.
struct pending_process {
  enum class asker {
    caller,
    watch, ///< Ourselves: when a process that lives will have ended.
    look,  ///< Ourselves: which processes there are.
  };

  asker whose = asker::caller;
  bool thaws = false; ///< It waits for the sandbox to run.
  bool started = false;
  unsigned attempt = 0;
  std::shared_ptr<const process_request> request;
  caf::typed_response_promise<process_reply_ptr> answer;
  /// Of a look: what was recorded to live when it began.
  std::vector<exec_id> recorded;
};

/// A process that lives, or went with its sandbox.
struct live_process {
  std::vector<caf::typed_response_promise<process_reply_ptr>> waiters;
  process_reply_ptr said; ///< Its outcome, which waits for the end of the sandbox that it tells of.
};

/// An answer that the backend could not give: it waits until it is known whether that is because
/// the sandbox has ended.
struct lost_answer {
  caf::response_promise promise;
  error why;
};

struct known_step {
  std::string digest;
  bool done = false;
};

/// What is under way about `sandbox_record::clocks` (sandbox_clocks.cpp).
struct sandbox_clock_keeping {
  std::uint64_t asked = 1;   ///< Counts what the record's clocks were set to.
  std::uint64_t written = 1; ///< The newest that is durable, which is `shown`.
  std::uint64_t told = 0;    ///< That the backend knows; 0: it must be told.
  std::uint64_t attempt = 0; ///< Counts the tellings; only the newest may report.
  bool telling = false;
  bool begun_here = false; ///< No other life has started it: a start tells them.
  sandbox_clocks shown;
  std::vector<std::pair<std::uint64_t, caf::typed_response_promise<ack>>> waiters;

  bool idle = false; ///< Nothing is under way, since `idle_since`.
  caf::actor_clock::time_point idle_since{};
  bool timer_set = false;
  std::uint64_t timer = 0; ///< Timers of another number are void.
  /// Execs of an earlier life of the node that the backend still keeps, run they or not.
  std::vector<exec_id> inherited;
  std::uint64_t look = 0; ///< Counts the looks at them; only the newest may report.
};

struct sandbox_data {
  static constexpr const char* name = "sandbox";

  sandbox_services services;
  sandbox_options options;

  /// What is wanted and what is. Only `apply` changes `record.is`.
  sandbox_record record;
  /// The state that is durable, hence may be seen.
  sandbox_state shown = sandbox_state::pending;
  std::uint64_t steps_recorded = 0;

  bool state_dirty = false; ///< `record.is` is ahead of the store.
  bool intent_dirty =
    false; ///< `wanted` or `held` is; written with the next transition, if one is due.
  bool writing = false;
  /// The journal failed: nothing can be promised any more.
  std::optional<error> broken;

  std::uint64_t epoch = 0; ///< Counts the verbs asked of the backend; only the newest may report.
  bool effect = false;     ///< One is under way.
  bool retrying = false;   ///< A failed tear-down waits for its next try.
  std::uint64_t start = 0; ///< Epoch of a start that has not reported: a tear-down waits for it.
  std::chrono::milliseconds stop_retry{0};

  enum class permit { none, asked, held };

  permit reclaim_permit = permit::none;

  /// What it will fail of as soon as the table allows.
  std::optional<sandbox_end> fault;
  /// What kept it from running, for those who wait.
  std::optional<error> failure;
  reclaim_report reclaimed;

  std::uint64_t probe = 0;
  bool probing = false;  ///< Recovery or lost contact: what lives of it is being found out.
  bool settling = false; ///< Recovered, and the node waits to hear that it is settled.

  /// Events that are in no batch yet.
  std::vector<job_event> noted;
  bool noted_in_record = false;              ///< The record goes with them.
  bool notes_armed = false;                  ///< A timer will send what no other batch has taken.
  caf::actor_clock::time_point notes_sent{}; ///< When it last was a batch of its own.

  std::vector<sandbox_waiter> waiters;
  std::vector<lost_answer> lost;
  std::map<exec_id, pending_exec> execs;
  std::map<std::uint64_t, exec_id> tickets;
  std::map<std::uint64_t, known_step> steps; ///< None any more once it has ended: they are stored.
  exec_id next_exec = 0;
  std::map<std::uint64_t, pending_file> files;
  std::map<std::uint64_t, pending_process> process_calls;
  /// Processes that live, each with those who wait for its end. Ours is one of `process_calls`.
  std::map<exec_id, live_process> live_processes;
  bool processes_known = false; ///< That they are all; else the backend was not asked yet.
  std::map<std::uint64_t, caf::typed_response_promise<sandbox_stats>> stats;
  sandbox_clock_keeping clocks;
  std::uint64_t next_ticket = 1;
  /// When the backend must have answered the files and stats that it was asked for, in that order;
  /// one timer for all. Answered ones go when their time has come.
  std::deque<std::pair<caf::actor_clock::time_point, std::uint64_t>> due;
};

/// Drives one sandbox through its lifecycle and is the only writer of its record. After
/// `terminated` it lives on for as long as somebody holds its handle, to answer what can still be
/// answered.
sandbox_inside::behavior_type sandbox(sandbox_inside::stateful_pointer<sandbox_data> self,
                                      sandbox_seed seed, sandbox_services services,
                                      sandbox_options options);

} // namespace dsec
