// The part of a command that acts on it while it runs: signals, cancellation, the deadline, its
// readers.

#include "backends/init/command.hpp"

#include <csignal>

namespace dsec::init {

using kind = wire::Outcome::Kind;

namespace {

/// A killed process that does not end within this is stuck in the kernel; its command is reported
/// anyway.
constexpr auto kill_patience = 10 * kj::SECONDS;

} // namespace

result<void> command::signal(int number) {
  if (number < 1 || number > 64)
    return error{errc::invalid_argument,
                 "signal " + std::to_string(number) + ": must be between 1 and 64"};
  if (ended_)
    return error{errc::invalid_state, "signal " + std::to_string(number) + " to exec "
                                        + std::to_string(id_) + ": it has ended"};
  return around_.reaper.signal(id_, number, reaper_link::whom::process_group);
}

void command::cancel() {
  kill_tree(kind::CANCELLED);
}

void command::kill_tree(kind because) {
  if (!ended_ && killed_because_ == nullptr)
    killed_because_ = because;
  // Once its children have left it, the group may serve another command after this one is
  // forgotten.
  if (group_)
    (void)group_->kill();
  // It may not have joined its group yet.
  if (group_ && start_ == nullptr)
    (void)around_.reaper.signal(id_, SIGKILL, reaper_link::whom::main_process);
  if (!ended_)
    late_task_ = around_.timer.afterDelay(kill_patience)
                   .then([this, because] { settle(because, "it does not end"); })
                   .eagerlyEvaluate([](kj::Exception&&) {});
}

void command::freeze_clock() {
  if (!clock_runs_)
    return;
  clock_runs_ = false;
  deadline_left_ -=
    std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - clock_since_);
  deadline_task_ = nullptr;
}

void command::thaw_clock() {
  if (request_.deadline_ms == 0 || ended_ || clock_runs_)
    return;
  clock_runs_ = true;
  clock_since_ = clock::now();
  const auto left = std::max<std::int64_t>(deadline_left_.count(), 0);
  deadline_task_ = around_.timer.afterDelay(left * kj::MILLISECONDS)
                     .then([this] { kill_tree(kind::TIMED_OUT); })
                     .eagerlyEvaluate([](kj::Exception&&) {});
}

kj::Maybe<input_pipe&> command::input() {
  if (!in_)
    return nullptr;
  return *in_;
}

kj::Promise<void> command::attach(wire::ByteSink::Client out, wire::ByteSink::Client err) {
  if (!out_ || !err_)
    return kj::READY_NOW;
  auto both = out_->attach(kj::mv(out));
  return both.then([rest = err_->attach(kj::mv(err))]() mutable { return kj::mv(rest); });
}

void command::let_output_go() {
  if (out_)
    out_->let_go();
  if (err_)
    err_->let_go();
}

void command::drop_spool() {
  if (out_)
    out_->drop_spool();
  if (err_)
    err_->drop_spool();
}

} // namespace dsec::init
