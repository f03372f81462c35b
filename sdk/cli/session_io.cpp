#include "sdk/cli/session_io.hpp"

#include "backends/container/wire.hpp"
#include "sdk/cli/interrupts.hpp"
#include "sdk/cli/own_input.hpp"
#include "sdk/cli/own_output.hpp"
#include "sdk/cli/own_terminal.hpp"

#include <fmt/format.h>
#include <kj/async-unix.h>
#include <kj/debug.h>

#include <csignal>
#include <string>
#include <string_view>
#include <utility>

namespace dsec {

namespace {

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

constexpr char detach_first = 'P' - '@';
constexpr char detach_second = 'Q' - '@';

/// What a detached or ended session comes to.
struct verdict {
  bool detached = false;
  int signal = 0;
};

class watch_printer final : public wire::LossySink::Server {
public:
  watch_printer(std::shared_ptr<own_output> to, std::shared_ptr<own_output> err)
    : to_{std::move(to)},
      err_{std::move(err)} {}

  kj::Promise<void> write(WriteContext context) override {
    return to_->write(wire::text(context.getParams().getBytes()));
  }

  kj::Promise<void> skipped(SkippedContext context) override {
    return err_->write(fmt::format("\r\ndsec: {} bytes of output are kept no more\r\n",
                                   context.getParams().getBytes()));
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  std::shared_ptr<own_output> to_, err_;
};

/// Finds the detach keys in what is typed. The first is held back until it is known what follows.
class detach_keys {
public:
  /// What of `typed` goes on to the process; `found` if the rest does not, because they were typed.
  std::string pass(std::string_view typed, bool& found) {
    std::string through;
    for (char key : typed) {
      if (std::exchange(first_, false)) {
        if (key == detach_second) {
          found = true;
          return through;
        }
        through += detach_first;
      }
      if (key == detach_first)
        first_ = true;
      else
        through += key;
    }
    return through;
  }

private:
  bool first_ = false;
};

/// This program's input on its way to the process.
class typist {
public:
  typist(client& at, wire::ProcessHandle::Client to, bool keys)
    : to_{kj::mv(to)},
      from_{at},
      with_keys_{keys} {}

  /// Answers when the detach keys were typed or standard input cannot be read, else never.
  kj::Promise<void> run() {
    return from_.read().then([this](std::string typed) -> kj::Promise<void> {
      const bool end = typed.empty();
      bool detach = false;
      const auto through = with_keys_ ? keys_.pass(typed, detach) : typed;
      if (detach || (end && from_.failed() != 0))
        return kj::READY_NOW;
      if (through.empty() && !end)
        return run();
      auto request = to_.inputRequest();
      request.setBytes(wire::bytes(through));
      request.setEnd(end);
      return request.send().then([this, end](auto&& answer) -> kj::Promise<void> {
        // It takes nothing any more: what it says, and how it ends, is still to be seen.
        if (error e; end || wire::failed(answer.getError(), e))
          return kj::NEVER_DONE;
        return run();
      });
    });
  }

  /// As own_input::failed.
  int failed() const {
    return from_.failed();
  }

private:
  wire::ProcessHandle::Client to_;
  own_input from_;
  bool with_keys_;
  detach_keys keys_;
};

error left_behind(error why) {
  why.message += "; the process goes on";
  return why;
}

kj::Promise<verdict> hear_end(client& at, int number) {
  return at.io.unixEventPort.onSignal(number).then([number](siginfo_t) {
    return verdict{false, number};
  });
}

kj::Promise<void> resize(wire::ProcessHandle::Client of) {
  auto size = own_terminal_size();
  if (!size)
    return kj::READY_NOW;
  auto request = of.resizeRequest();
  request.setRows(size->rows);
  request.setColumns(size->columns);
  return request.send().ignoreResult();
}

kj::Promise<void> follow_size(client& at, wire::ProcessHandle::Client of) {
  return resize(of).catch_([](kj::Exception&&) {}).then([&at, of]() mutable {
    return at.io.unixEventPort.onSignal(SIGWINCH).then(
      [&at, of](siginfo_t) mutable { return follow_size(at, kj::mv(of)); });
  });
}

} // namespace

result<std::optional<exec_result>>
run_session(client& at, wire::ProcessHandle::Client of, const session_options& options) {
  for (int number : ending_signals)
    kj::UnixEventPort::captureSignal(number);
  kj::UnixEventPort::captureSignal(SIGWINCH);
  std::optional<raw_terminal> raw;
  if (options.terminal && options.input)
    raw.emplace();
  auto out = std::make_shared<own_output>(1);
  auto err = std::make_shared<own_output>(2);
  KJ_DEFER({
    out->watch(nullptr);
    err->watch(nullptr);
  });

  auto request = of.attachRequest();
  request.setFrom(options.from == attach_from::tail ? wire::AttachFrom::TAIL
                                                    : wire::AttachFrom::START);
  request.setStdout(kj::heap<watch_printer>(out, err));
  request.setStderr(kj::heap<watch_printer>(err, err));
  using answer = result<std::optional<exec_result>>;
  error refused;
  std::optional<exec_result> known;
  // From the start: who asks when it has gone with its sandbox is told less.
  auto waiting = of.waitRequest().send();
  auto ended = request.send()
                 .then([&](auto&& attached) -> kj::Promise<void> {
                   // If its sandbox has ended, that is how it ended, too.
                   if (wire::failed(attached.getError(), refused)
                       && refused.code != errc::invalid_state && refused.code != errc::expired)
                     return kj::READY_NOW;
                   return waiting.then([&](auto&& told) {
                     if (!wire::failed(told.getError(), refused))
                       known = wire::read(told.getResult());
                   });
                 })
                 .then([] { return verdict{}; });

  auto broke = kj::newPromiseAndFulfiller<verdict>();
  int failed = 0;
  for (auto* stream : {out.get(), err.get()})
    stream->watch([&, stream] {
      failed = stream->failed();
      broke.fulfiller->fulfill(verdict{true, 0});
    });

  std::optional<typist> input;
  kj::Promise<verdict> typed = kj::NEVER_DONE;
  if (options.input) {
    input.emplace(at, of, raw && raw->raw());
    typed = input->run().then(
      []() -> kj::Promise<verdict> {
        return verdict{true, 0};
      },
      [](kj::Exception&&) -> kj::Promise<verdict> { return kj::NEVER_DONE; });
  }
  kj::Promise<void> sizes = kj::NEVER_DONE;
  if (options.terminal)
    sizes = follow_size(at, of).eagerlyEvaluate([](kj::Exception&&) {});

  auto over = ended.exclusiveJoin(kj::mv(typed)).exclusiveJoin(kj::mv(broke.promise));
  for (int number : ending_signals)
    over = over.exclusiveJoin(hear_end(at, number));
  auto came = over
                .then([](verdict x) -> result<verdict> { return x; },
                      [](kj::Exception&& e) -> result<verdict> {
                        return wire::broken("talk to the runtime", e);
                      })
                .wait(at.io.waitScope);
  if (raw)
    raw->restore();
  if (!came)
    return came.error();
  if (came->signal != 0)
    end_by_signal(came->signal);
  if (failed != 0)
    return left_behind(errno_error(failed, "write standard output"));
  if (input && input->failed() != 0)
    return left_behind(errno_error(input->failed(), "read standard input"));
  if (came->detached)
    return answer{std::nullopt};
  if (!known)
    return refused;
  return answer{std::move(known)};
}

} // namespace dsec
