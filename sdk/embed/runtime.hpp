#pragma once

#include "backends/backend.hpp"
#include "sdk/embed/future.hpp"
#include "state/clocks.hpp"
#include "state/environment.hpp"
#include "state/event.hpp"
#include "state/exec.hpp"
#include "state/file.hpp"
#include "state/ids.hpp"
#include "state/process.hpp"
#include "state/records.hpp"
#include "state/reports.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// The embedded runtime: gateway and node actors in the caller's process. All types here may be
/// used from any thread. Nothing throws; every failure is a `dsec::error` in a future. Callbacks
/// run on a thread of the runtime and must not block it; a future dropped without being read is
/// fine.

namespace dsec {

struct runtime_options {
  /// Where the machine-wide spawner keeps layers (store/), scratch and swap.
  std::filesystem::path data_dir = "/var/lib/dsec";
  /// Where its sockets and layer mounts are. At most 60 bytes.
  std::filesystem::path run_dir = "/run/dsec";
  /// Actor workers; 0: as many as cores.
  unsigned workers = 0;
  /// Sandboxes that this node admits at once.
  std::uint64_t capacity = 4096;
  /// Prepared sandboxes (network namespace, cgroups) that the spawner keeps at hand.
  unsigned warm = 32;
  /// The dsec-spawner program. Empty: next to the running program, then PATH.
  std::filesystem::path spawner;
  /// Tombstones kept, the oldest dropped first.
  std::uint64_t tombstones = 10'000;
  /// How long the spawner or a dsec-init may take over one question before it counts as out of
  /// reach. Commands run for as long as they run.
  std::chrono::milliseconds backend_timeout{60'000};
};

/// A command under way.
class running_exec {
public:
  /// The outcome, and output as far as the spool kept it.
  future<exec_result> result() const;

  /// Kills its process tree; the result becomes `cancelled`.
  void cancel();

  /// To the main process and its process group, as a terminal's keys do.
  void signal(int number);

private:
  friend class sandbox;
  struct state;
  std::shared_ptr<state> state_;
};

/// What reads a process's output. Dropping it changes nothing; `detach` ends it.
class process_attachment {
public:
  /// When both streams have ended and the sink has all, or after `detach`. invalid_state (expired)
  /// if its sandbox ended before the sink had all.
  future<void> ended() const;
  void detach();

private:
  friend class process;
  struct state;
  std::shared_ptr<state> state_;
};

/// A background process or a session of a sandbox. A handle; dropping it does nothing to the
/// process, which lives on over every restart of ours until it ends, is killed, or its sandbox
/// ends. not_found of every call once it was removed.
class process {
public:
  exec_id id() const;

  /// Its outcome, and what is kept of its output. Never thaws. The end of its sandbox is an outcome
  /// as well, with what was kept until then for whoever waits already; who asks later is told in
  /// `cause` that the output went with the sandbox. invalid_state (expired) if it had ended before
  /// its sandbox did: then its end is among the job's events.
  future<exec_result> wait() const;

  /// Its output, from the oldest byte that is kept or from now on. Any number at once: a slow sink
  /// slows neither the process nor the others, but is told what it missed (`output_sink::skipped`).
  /// Never thaws.
  process_attachment
  attach(std::shared_ptr<output_sink> sink, attach_from from = attach_from::start) const;

  /// To its standard input or terminal; done when that has taken it. `end` closes it afterwards (a
  /// terminal sends its end-of-file character). invalid_state if input is closed or it has ended.
  future<void> write(std::string bytes, bool end = false) const;

  /// invalid_state without a terminal.
  future<void> resize(terminal_size size) const;

  /// To the main process, or with `tree` to every process of it. invalid_state if it has ended.
  future<void> signal(int number, bool tree = false) const;

  /// Kills its tree; the outcome becomes `cancelled`. Fine if it has ended.
  future<void> kill() const;

  /// Drops what is kept of one that has ended; invalid_state while it lives.
  future<void> remove() const;

private:
  friend class sandbox;
  struct state;
  std::shared_ptr<state> state_;
};

/// How a file is written.
struct write_options {
  std::uint32_t mode = 0644; ///< Of a new file.
  /// Replaced when all is written: nobody sees a part, and a failure leaves what was. A symbolic
  /// link is followed, a replaced file's mode and owner are kept.
  bool atomic = true;
};

/// A handle; dropping it does nothing to the sandbox. What is under way when the sandbox ends, by
/// whatever, is answered with that: a command with an outcome, the rest with invalid_state, or
/// expired if it was the time to live or the rollout budget. What is asked afterwards is refused
/// with the same codes, but for a recorded step, which is replayed.
class sandbox {
public:
  const sandbox_id& id() const;

  /// Runs a command and collects its output. Resumes a paused or reclaimed sandbox first, unless
  /// its job holds it (`preempted`). With `spec.step`: recorded, runs exactly once, replayed
  /// afterwards; another request under a recorded step is `diverged`. no_program or not_executable
  /// if there is nothing to run.
  future<exec_result> exec(exec_spec spec) const;

  /// The same, with live output through `sink` (may be null) and a handle to cancel.
  running_exec start(exec_spec spec, std::shared_ptr<output_sink> sink = nullptr) const;

  /// Whole file, at most `bytes_max`; larger is `exhausted`.
  future<std::string> read(std::string path, std::uint64_t bytes_max = 64ull << 20) const;

  /// Creates or replaces; missing directories are made.
  future<void> write(std::string path, std::string bytes, write_options options = {}) const;

  /// Copies a local file, or a directory with all below it, to `to`, as one stream. As with cp: a
  /// directory that exists at `to`, or a `to` that ends in '/' or '/.', takes it in under its own
  /// name; otherwise it becomes `to`. A `from` that ends in '/.' gives its content instead.
  /// Symbolic links are copied as links and never followed out of the sandbox's tree. Modes, times
  /// of change, holes, links, user.* attributes of files and byte-exact names are kept; owners
  /// become root's. Left out, and told in the report: devices, sockets, FIFOs, what cannot be read,
  /// a file that says it has no bytes (/proc, /sys) and has more than 32 MiB. Left off, and told:
  /// set-user-ID and set-group-ID bits and all other attributes (ACLs, capabilities). Left off in
  /// silence: owners and times of access. A file that changes meanwhile is told. A file is replaced
  /// when the new one is complete: if the copy fails the old one stays, and until then the disk
  /// limit counts both. invalid_argument if a directory would replace a file or the other way
  /// round.
  future<tree_report> upload(std::filesystem::path from, std::string to) const;

  /// The same the other way; owners become the caller's. What an agent planted is refused here by
  /// the same rules: nothing is written outside of `to`.
  future<tree_report> download(std::string from, std::filesystem::path to) const;

  /// The tar archive that `archive` gives is unpacked below the directory `path`, by the rules of
  /// `upload`; names that lead outside are left out and told.
  future<tree_report> unpack(std::string path, std::shared_ptr<input_source> archive) const;

  /// `path` with all below it as a tar archive (pax); done when `archive` has all.
  future<tree_report> pack(std::string path, std::shared_ptr<archive_sink> archive) const;

  /// Starts a background process or session. Resumes the sandbox first. invalid_state if one that
  /// lives has its name.
  future<process> spawn(process_spec spec) const;

  /// Those that live, and those that have ended and are kept, in order of their start. Never thaws.
  future<std::vector<process_info>> processes() const;

  /// The process of that id. No question is asked: calls of the handle answer not_found.
  process find_process(exec_id id) const;

  /// The process of that name that lives, else the last that ended; not_found if there is none.
  future<process> find_process(std::string name) const;

  /// Sets its clocks, as totals that count from where they began: a later end is an extension, an
  /// earlier one a cut. Durable when answered.
  future<void> set_clocks(sandbox_clocks clocks) const;

  future<std::vector<directory_entry>> list(std::string path) const;

  future<file_status> stat(std::string path) const;

  /// Freezes; with `reclaim` also gives its memory back. Done when it is. Commands under way freeze
  /// with it and go on where they were when it is resumed, by `resume` or by the next command or
  /// file operation; until then they are not answered. Requests that have not begun come after the
  /// pause, whenever they were made: they bring it back, or answer `preempted`. A pause is not an
  /// outcome: no command fails of it. Their deadlines do not run meanwhile; leases do.
  /// `exec_result::duration` holds the frozen time, too.
  future<void> pause(bool reclaim = false) const;

  /// Thaws. invalid_state if a later pause or stop overtakes it.
  future<void> resume() const;

  /// Ends it and everything in it. Idempotent.
  future<void> stop() const;

  future<sandbox_info> info() const;

  future<sandbox_stats> stats() const;

  /// Every recorded step in order of step numbers, without output. Also of one that has ended.
  future<std::vector<step_record>> trajectory() const;

  /// One recorded step with its output; not_found if it was never begun.
  future<step_record> step(std::uint64_t step) const;

private:
  friend class runtime;
  friend class job;
  struct state;
  std::shared_ptr<state> state_;
};

struct job_options {
  lease_terms lease;
};

struct create_options {
  dsec::environment environment;
  /// Empty: none. Repeated within a job, also after a crash, it returns the sandbox that it made;
  /// with another environment it is `diverged`. One whose start failed is made anew.
  std::string idempotency_key;
  sandbox_clocks clocks;
};

/// Events as they come. Dropping it ends the stream, after the call that may be under way.
class event_subscription {
public:
  event_subscription() = default;
  event_subscription(event_subscription&&) noexcept;
  event_subscription& operator=(event_subscription&&) noexcept;
  ~event_subscription();

private:
  friend class job;
  struct state;
  std::shared_ptr<state> state_;
};

/// A handle; the lease is renewed by the runtime for as long as the process lives and the job is
/// open.
class job {
public:
  const job_id& id() const;

  /// Done when the sandbox runs (commands work). expired if its time to live or rollout budget
  /// ended before.
  future<sandbox> create(create_options options) const;

  /// As one admission and one durable write; each entry on its own: one failure fails no other.
  std::vector<future<sandbox>> create_batch(std::vector<create_options> options) const;

  /// Pauses and reclaims every sandbox of the job.
  future<preempt_report> preempt(preempt_mode mode = preempt_mode::until_request) const;

  future<void> resume() const;

  /// Stops all its sandboxes and ends the job.
  future<void> close() const;

  future<std::vector<sandbox_info>> list(bool with_ended = false) const;

  /// At most `count` (and 1000) events that are there now, from `cursor`, or from the oldest that
  /// is kept if that is later. `event_page::next` is the cursor to go on with, in this life or
  /// another. A cursor beyond the end (the machine lost power, and with it the last events) is
  /// taken as the end.
  future<event_page> events(std::uint64_t cursor = 1, std::uint64_t count = 1000) const;

  /// Every event from `cursor` on, each once, in order, then live, on a runtime thread. A gap in
  /// the cursors says that events were dropped before they were read. `over` is called likewise,
  /// once all is told that happened in a job that is closed and whose sandboxes have ended; of one
  /// that is opened anew the stream goes on, and `over` may be called again.
  event_subscription follow(std::uint64_t cursor, std::function<void(const job_event&)> listener,
                            std::function<void()> over = nullptr) const;

private:
  friend class runtime;
  struct state;
  std::shared_ptr<state> state_;
};

class runtime {
public:
  /// Opens `state_dir` (created, 0700), recovers, and serves `state_dir/dsec.sock`. Blocks until
  /// recovered. state_in_use (with the pid) if another process owns it; unavailable without a
  /// spawner and without the rights to start one, or if it does not answer in time.
  static result<std::unique_ptr<runtime>>
  open(const std::filesystem::path& state_dir, runtime_options options = {});

  /// Leaves sandboxes as they are; their leases run from now. Commands under way go on; those that
  /// no step records, and so nobody can ask for any more, are cancelled by the runtime that takes
  /// the sandbox over, also after a crash. Blocks.
  ~runtime();

  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Creates the job, or takes it up again after a crash: its sandboxes are in `list`.
  future<dsec::job> open_job(std::string name, job_options options = {});

  /// The job of that name as it is: unlike `open_job` it neither creates, nor renews, nor resumes.
  /// not_found if there is none. A closed one has its events and its ended sandboxes left to read.
  future<dsec::job> find_job(std::string name);

  /// not_found if it never existed or its tombstone was dropped. Ended ones answer `info` alone.
  future<sandbox> find(const sandbox_id& id);

  future<std::vector<sandbox_info>> list(bool with_ended = false);

private:
  runtime();
  struct access;
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace dsec
