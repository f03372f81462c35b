#pragma once

#include "state/environment.hpp"
#include "state/exec.hpp"
#include "state/file.hpp"
#include "state/ids.hpp"
#include "state/process.hpp"
#include "state/records.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace dsec {

/// Called exactly once, on any thread, possibly before the call that took it has returned.
template <class T>
using completion = std::function<void(result<T>)>;

struct start_spec {
  sandbox_id id;
  dsec::environment environment;
  lease_terms lease;
  sandbox_clocks clocks;
  /// How long ago it was created: its time to live counts from then.
  std::chrono::milliseconds age{0};
};

enum class found_phase : std::uint8_t { running, paused, reclaimed };

/// What a backend finds of a sandbox when it connects to it.
struct found_sandbox {
  found_phase phase = found_phase::running;
  /// Execs whose outcome it keeps for whoever asks, or will once they have ended. Processes are not
  /// among them.
  std::vector<exec_id> execs;
  /// Those of them that have not ended.
  std::vector<exec_id> running;
};

struct live_sandbox {
  sandbox_id id;
  bool ending = false; ///< A stop is at work on it.
};

/// How a sandbox ended without being asked to; `cause` is never `none`.
struct sandbox_end {
  end_cause cause = end_cause::infrastructure;
  std::string detail;
};

struct reclaim_report {
  std::uint64_t before_bytes = 0;
  std::uint64_t after_bytes = 0;
};

struct sandbox_stats {
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::uint32_t processes = 0;
  std::chrono::microseconds cpu{0};
  std::uint64_t oom_kills = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint32_t processes_limit = 0;
  std::uint32_t cpu_limit_milli = 0; ///< 1000 = one core; 0 = no limit.
  std::uint64_t disk_bytes = 0;      ///< Written on top of the image.
  std::uint64_t disk_limit_bytes = 0;
  /// From and to block devices, by its processes. 0 where the machine's unified hierarchy has no
  /// `io` controller, as on hybrid ones: a v1 `blkio` group would cost every command its entry.
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  /// What is left of its clocks; zero: the clock does not run.
  std::chrono::milliseconds time_to_live_left{0};
  std::chrono::milliseconds rollout_budget_left{0};
};

/// Standard input that comes while the command runs.
class input_source {
public:
  virtual ~input_source() = default;

  /// Asks for the next bytes, at most 64 KiB; empty ends the stream. Called on the backend's
  /// thread, again only after `next` was called; `next` may be called from any thread, once.
  virtual void read(std::function<void(std::string)> next) = 0;
};

/// Live bytes of a streamed exec. Methods are called on the backend's thread, in order, and may
/// block it only briefly; `ready` is called when the next bytes may come (back-pressure).
class output_sink {
public:
  virtual ~output_sink() = default;

  enum class stream : std::uint8_t { out, err };

  /// `ready` may be called from any thread, once.
  virtual void write(stream which, std::string bytes, std::function<void()> ready) = 0;

  /// So many bytes, written before what comes next, are kept no more: a reader of a process that
  /// was too slow, or came late.
  virtual void skipped(stream, std::uint64_t) {}

  /// What follows `exec_spec::stdin_bytes`, which must be set (it may be empty). Null: nothing.
  virtual std::shared_ptr<input_source> input() {
    return nullptr;
  }
};

/// A command as a backend takes it: variables, directory and user are already complete.
struct exec_call {
  exec_id id = 0;
  exec_spec spec;
  std::shared_ptr<output_sink> sink; ///< Null: collect into the spool only.
};

struct file_read {
  std::string path;
  std::uint64_t bytes_max = 64ull << 20;
};

struct file_write {
  std::string path;
  std::string bytes;
  std::uint32_t mode = 0644;
  bool make_parents = true;
  bool append = false;
  /// The file is replaced when all is written: nobody sees a part of it, and a failure leaves what
  /// was. Not with `append`.
  bool atomic = false;
};

struct file_list {
  std::string path;
};

struct file_stat {
  std::string path;
};

/// Bytes that go out as they come; called like `output_sink::write`. The answer of the request is
/// the end.
class archive_sink {
public:
  virtual ~archive_sink() = default;
  virtual void write(std::string bytes, std::function<void()> ready) = 0;
};

/// Unpacks a tar archive below the directory `path`, which is made if it is missing.
struct tree_write {
  std::string path;
  std::shared_ptr<input_source> archive;
};

/// Packs `path` (a directory with all below it, or one file) into a tar archive.
struct tree_read {
  std::string path;
  std::shared_ptr<archive_sink> archive;
};

using file_request =
  std::variant<file_read, file_write, file_list, file_stat, tree_write, tree_read>;

/// read: bytes. write: nothing. list: entries. stat: status.
struct file_reply {
  std::string bytes;
  std::vector<directory_entry> entries;
  file_status status;
  tree_report tree;
};

// -- processes: commands with a handle of their own

struct process_start {
  exec_id id = 0;
  process_spec spec; ///< Variables, directory and user are already complete.
};

struct process_list {};

/// Answers when it has ended.
struct process_wait {
  exec_id id = 0;
};

/// Answers when both streams have ended and the sink has all, or it was detached. Any number of
/// attachments at once; a slow one slows neither the process nor the others, but skips.
struct process_attach {
  exec_id id = 0;
  attach_from from = attach_from::start;
  std::shared_ptr<output_sink> sink;
  std::uint64_t ticket = 0; ///< For `process_detach`; unique per sandbox.
};

struct process_detach {
  std::uint64_t ticket = 0;
};

/// Answers when it is written, which may wait for the process to read. invalid_state if its input
/// is closed or it has ended.
struct process_input {
  exec_id id = 0;
  std::string bytes;
  bool end = false; ///< Close it afterwards.
};

/// invalid_state without a terminal.
struct process_resize {
  exec_id id = 0;
  terminal_size size;
};

/// To the main process; with `tree`, to every process of it. invalid_state if it has ended.
struct process_signal {
  exec_id id = 0;
  int number = 0;
  bool tree = false;
};

/// Kills its tree; its outcome becomes `cancelled`. ok if it has ended.
struct process_kill {
  exec_id id = 0;
};

/// Drops what is kept of one that has ended; invalid_state while it lives.
struct process_remove {
  exec_id id = 0;
};

/// not_found if there is no process of that id.
using process_request =
  std::variant<process_start, process_list, process_wait, process_attach, process_detach,
               process_input, process_resize, process_signal, process_kill, process_remove>;

/// list: processes, in order of their start. wait: outcome. The rest: nothing.
struct process_reply {
  std::vector<process_info> processes;
  exec_result outcome;
};

/// How this kernel runs sandboxes. Every verb is idempotent and may be repeated after a crash:
/// whoever timed out cannot know whether the first attempt arrived. No verb blocks its caller.
/// After the destructor no completion is called.
class backend {
public:
  virtual ~backend() = default;

  /// Builds the sandbox; completes when commands can run in it. A live one with this id is adopted.
  virtual void start(const start_spec& spec, completion<void> done) = 0;

  /// Connects to a sandbox that an earlier process started. not_found if nothing of it lives; then
  /// `ended_by_itself` may say why.
  virtual void adopt(const sandbox_id& id, completion<found_sandbox> done) = 0;

  /// The tombstone that dsec-init left, if it ended its sandbox by itself. not_found otherwise.
  virtual void ended_by_itself(const sandbox_id& id, completion<sandbox_end> done) = 0;

  virtual void pause(const sandbox_id& id, completion<void> done) = 0;

  virtual void reclaim(const sandbox_id& id, completion<reclaim_report> done) = 0;

  virtual void resume(const sandbox_id& id, completion<void> done) = 0;

  /// Kills everything of it and removes every trace; ok if nothing exists.
  virtual void stop(const sandbox_id& id, completion<void> done) = 0;

  /// Starts, or joins, the exec with `call->id`. Outcomes are values; an error means that the
  /// sandbox cannot be reached (unavailable: it may have run).
  virtual void exec(const sandbox_id& id, std::shared_ptr<const exec_call> call,
                    completion<exec_result> done) = 0;

  /// Kills the process tree of an exec; its outcome becomes `cancelled`.
  virtual void cancel(const sandbox_id& id, exec_id exec) = 0;

  /// Sends a signal to the main process of an exec and its process group; nothing happens if it
  /// has ended.
  virtual void signal(const sandbox_id& id, exec_id exec, int number) = 0;

  /// The outcome of `exec` is durable; dsec-init may forget it.
  virtual void forget(const sandbox_id& id, exec_id exec) = 0;

  /// Nobody will ask for the outcomes of these, which `adopt` found: each is forgotten now, or once
  /// the command has ended.
  virtual void discard(const sandbox_id& id, const std::vector<exec_id>& execs) = 0;

  virtual void file(const sandbox_id& id, file_request request, completion<file_reply> done) = 0;

  virtual void
  process(const sandbox_id& id, process_request request, completion<process_reply> done) = 0;

  /// Sets its clocks; they count from where `start` began them. idle_timeout is not the backend's.
  virtual void
  set_clocks(const sandbox_id& id, const sandbox_clocks& clocks, completion<void> done) = 0;

  virtual void stats(const sandbox_id& id, completion<sandbox_stats> done) = 0;

  /// Sets both lease deadlines of these sandboxes, counted from now.
  virtual void renew(const std::vector<sandbox_id>& ids, const lease_terms& lease) = 0;

  /// Everything this backend runs on this machine for this node, tear-downs under way included.
  virtual void inventory(completion<std::vector<live_sandbox>> done) = 0;
};

/// Told when a sandbox ends, freezes or thaws without being asked. Any thread.
struct backend_events {
  std::function<void(const sandbox_id&, const sandbox_end&)> ended;
};

} // namespace dsec
