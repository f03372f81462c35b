#pragma once

#include "backends/init/counters.hpp"
#include "backends/init/exec_groups.hpp"
#include "backends/init/input_pipe.hpp"
#include "backends/init/output_stream.hpp"
#include "backends/init/reaper_link.hpp"
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

  void fill(wire::ExecResult::Builder to) const;

  /// What a message with that result takes.
  capnp::MessageSize answer_size() const;

  /// What PID 1 told.
  void told(const reaper::event& event);

  /// Decides the outcome of a command that runs no longer, or that nobody will hear of again.
  void settle(wire::Outcome::Kind kind, std::string cause);

  result<void> signal(int number);
  void cancel();
  /// The kernel killed something for memory since the command began.
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
  void decide(const reaper::event& event);
  void end(wire::Outcome::Kind kind, std::int32_t code);
  void kill_tree(wire::Outcome::Kind because);
  void read_output();
  void drain();

  command_surroundings around_;
  std::uint64_t id_;
  manner manner_;
  command_request request_;
  std::unique_ptr<exec_group> group_;
  kj::Own<output_stream> out_, err_;
  kj::Own<input_pipe> in_;

  kj::AutoCloseFd status_;
  kj::Own<kj::UnixEventPort::FdObserver> status_observer_;
  kj::Maybe<result<void>> start_; ///< Set once it is known.

  clock::time_point began_{};
  std::uint64_t oom_before_ = 0;
  std::uint64_t refusals_before_ = 0;
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
  std::chrono::milliseconds duration_{0};

  kj::Own<kj::PromiseFulfiller<void>> tell_finished_;
  kj::ForkedPromise<void> finished_;
  kj::Promise<void> deadline_task_, late_task_, output_task_;
};

} // namespace dsec::init
