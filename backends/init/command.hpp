#pragma once

#include "backends/init/counters.hpp"
#include "backends/init/disk_probe.hpp"
#include "backends/init/exec_groups.hpp"
#include "backends/init/input_pipe.hpp"
#include "backends/init/oom_log.hpp"
#include "backends/init/output_stream.hpp"
#include "backends/init/reaper_link.hpp"
#include "backends/init/terminal.hpp"
#include "backends/init/users.hpp"
#include "schemas/command.capnp.h"

#include <kj/async-io.h>
#include <kj/refcount.h>

#include <chrono>
#include <memory>
#include <string>

namespace dsec::init {

/// What a command needs of its sandbox. All of it outlives every command.
struct command_surroundings {
  kj::UnixEventPort& port;
  kj::Timer& timer;
  reaper_link& reaper;
  exec_groups& groups;
  const counters& counts;
  const launch& given;
  oom_log& memory_deaths;
  disk_probe& disk;
};

/// A request to run something, copied out of its message and checked.
struct command_request {
  static result<command_request> read(wire::ExecSpec::Reader spec);

  std::string program; ///< argv[0], for messages.
  std::string cwd;     ///< For messages.
  std::string user;
  std::string block; ///< cwd, argv and env, each with its NUL.
  std::uint32_t arguments = 0;
  std::uint32_t variables = 0;
  std::uint64_t deadline_ms = 0;
  std::uint64_t spool_bytes = 0;
  bool has_stdin = false;
};

/// One exec: from the request to PID 1 until its outcome is acknowledged. Its outcome is decided
/// once, when the main process has ended; `finished` also waits for the output.
///
/// What the outcome stands on: `timed_out` and `cancelled` on our own doing. `oom_killed` on the
/// command's account (`exec_account`), which must have counted a kill, and on the kernel's log,
/// which names the victim (`oom_log`); where that cannot be read, on the account alone, and `cause`
/// says so. `infrastructure`, in that place, on the log or the peak, which say that the limit was
/// not the sandbox's. `pids_limit` on a fork of its own that was refused, in the account, though
/// that this made it fail is a judgement. `disk_full` is a judgement altogether (`disk_probe`).
class command : public kj::Refcounted {
public:
  /// How its start and its output are heard of.
  enum class manner {
    attended,  ///< At once, and its output waits for a reader.
    watched,   ///< At once, for whoever holds its capability.
    collected, ///< With its end; what it writes is looked at sooner only if it runs for a while.
  };

  command(command_surroundings around, std::uint64_t id, command_request request, manner how);
  ~command() noexcept(false);

  std::uint64_t id() const {
    return id_;
  }

  /// Before `start`: the terminal is its input and both outputs, and that of its session.
  void use_terminal(terminal_ends ends) {
    terminal_ = kj::mv(ends);
  }

  /// Asks PID 1 to start it.
  result<void> start(const identity& who);

  /// After `start`, of a watched one: answers when it runs, or was refused by the process limit (an
  /// outcome), or with the error that stood in the way.
  kj::Promise<result<void>> started();

  /// Why it never ran; known once it has finished.
  const error* refusal() const {
    KJ_IF_MAYBE (known, start_) {
      return *known ? nullptr : &known->error();
    }
    return nullptr;
  }

  /// The outcome is decided.
  bool ended() const {
    return ended_;
  }

  /// Nothing of it runs or writes any more.
  bool silent() const {
    return ended_ && (!out_ || out_->ended()) && (!err_ || err_->ended());
  }

  kj::Promise<void> finished() {
    return finished_.addBranch();
  }

  /// Its outcome was asked for and told, and no reader waits for the rest of its output.
  bool owes_nobody() const {
    return told_ && !(out_ && out_->has_reader()) && !(err_ && err_->has_reader());
  }

  void fill(wire::ExecResult::Builder to) const;

  /// What a message with that result takes.
  capnp::MessageSize answer_size() const;

  /// Where its process tree is, from its start on; null if it was never asked for.
  const exec_group* group() const {
    return group_.get();
  }

  /// What PID 1 told.
  void told(const reaper::event& event);

  /// Decides the outcome of a command that runs no longer, or that nobody will hear of again.
  void settle(wire::Outcome::Kind kind, std::string cause);

  /// To the main process and its process group.
  result<void> signal(int number);
  void cancel();
  /// The kernel killed a process of its own for memory.
  bool saw_oom_kill() const;

  void freeze_clock();
  void thaw_clock();

  kj::Maybe<input_pipe&> input();
  kj::Promise<void> attach(wire::ByteSink::Client out, wire::ByteSink::Client err);
  /// The reader that its output waits for will not come.
  void let_output_go();
  void drop_spool();

private:
  using clock = std::chrono::steady_clock;

  result<void> ask_reaper(const identity& who);
  error describe(const reaper::event& failure) const;
  void know_start(result<void> known);
  void refuse(error why);
  void no_process();
  void decide(const reaper::event& event);
  kj::Maybe<wire::Outcome::Kind> memory_death(pid_t inside, const reaper_link::outside& who);
  void end(wire::Outcome::Kind kind, std::int32_t code);
  void finish();
  void kill_tree(wire::Outcome::Kind because);
  void read_output();
  void drain();

  command_surroundings around_;
  std::uint64_t id_;
  manner manner_;
  command_request request_;
  terminal_ends terminal_; ///< Until it is asked for.
  std::unique_ptr<exec_group> group_;
  kj::Own<output_stream> out_, err_;
  kj::Own<input_pipe> in_;

  kj::AutoCloseFd status_;
  kj::Own<kj::UnixEventPort::FdObserver> status_observer_;
  kj::Maybe<result<void>> start_; ///< Set once it is known.

  clock::time_point began_{};
  std::uint64_t oom_before_ = 0;
  std::uint64_t refusals_before_ = 0;
  disk_probe::stay disk_stay_;
  bool failed_on_full_disk_ = false;
  std::chrono::milliseconds deadline_left_{0};
  clock::time_point clock_since_{};
  bool clock_runs_ = false;

  bool ended_ = false;
  kj::Maybe<wire::Outcome::Kind> killed_because_;
  wire::Outcome::Kind kind_ = wire::Outcome::Kind::INFRASTRUCTURE;
  std::int32_t code_ = 0;
  std::uint64_t limit_bytes_ = 0, peak_bytes_ = 0;
  std::string cause_;
  std::uint32_t oom_kills_ = 0;
  mutable bool told_ = false; ///< By `fill`.
  std::chrono::milliseconds duration_{0};

  kj::Own<kj::PromiseFulfiller<void>> tell_finished_;
  kj::ForkedPromise<void> finished_;
  kj::Promise<void> deadline_task_, late_task_, output_task_;
};

} // namespace dsec::init
