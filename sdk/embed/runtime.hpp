#pragma once

#include "backends/backend.hpp"
#include "sdk/embed/future.hpp"
#include "state/environment.hpp"
#include "state/exec.hpp"
#include "state/file.hpp"
#include "state/ids.hpp"
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

  /// To the main process.
  void signal(int number);

private:
  friend class sandbox;
  struct state;
  std::shared_ptr<state> state_;
};

/// A handle; dropping it does nothing to the sandbox.
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

  /// Creates or truncates; missing directories are made.
  future<void> write(std::string path, std::string bytes, std::uint32_t mode = 0644) const;

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
  /// with another environment it is `diverged`.
  std::string idempotency_key;
};

/// A handle; the lease is renewed by the runtime for as long as the process lives and the job is
/// open.
class job {
public:
  const job_id& id() const;

  /// Done when the sandbox runs (commands work).
  future<sandbox> create(create_options options) const;

  /// As one admission and one durable write; each entry on its own: one failure fails no other.
  std::vector<future<sandbox>> create_batch(std::vector<create_options> options) const;

  /// Pauses and reclaims every sandbox of the job.
  future<preempt_report> preempt(preempt_mode mode = preempt_mode::until_request) const;

  future<void> resume() const;

  /// Stops all its sandboxes and ends the job.
  future<void> close() const;

  future<std::vector<sandbox_info>> list(bool with_ended = false) const;

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

  /// Leaves sandboxes as they are; their leases run from now. Blocks.
  ~runtime();

  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Creates the job, or takes it up again after a crash: its sandboxes are in `list`.
  future<dsec::job> open_job(std::string name, job_options options = {});

  /// The job of that name as it is: unlike `open_job` it neither creates, nor renews, nor resumes.
  /// not_found if there is none or it was closed.
  future<dsec::job> find_job(std::string name);

  /// not_found if it never existed or its tombstone was dropped. Ended ones answer `info` alone.
  future<sandbox> find(const sandbox_id& id);

  future<std::vector<sandbox_info>> list(bool with_ended = false);

  /// Every state change from now on, in order, on a runtime thread. Ends with the runtime.
  void subscribe(std::function<void(const sandbox_change&)> listener);

private:
  runtime();
  struct access;
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace dsec
