#include "sdk/cli/command_io.hpp"

#include "backends/container/byte_stream.hpp"
#include "backends/container/wire.hpp"
#include "sdk/cli/own_input.hpp"
#include "sdk/cli/own_output.hpp"
#include "sdk/front/convert.hpp"
#include "state/format.hpp"

#include <kj/debug.h>

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <unistd.h>

namespace dsec {

namespace {

/// After the command was cancelled. dsec-init reports a killed one within 10 s at the latest.
constexpr auto cancel_patience = 15 * kj::SECONDS;

class printer final : public wire::ByteSink::Server {
public:
  explicit printer(std::shared_ptr<own_output> to) : to_{std::move(to)} {}

  kj::Promise<void> write(WriteContext context) override {
    return to_->write(wire::text(context.getParams().getBytes()));
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  std::shared_ptr<own_output> to_;
};

/// Of an input that broke off, the end is never said.
kj::Promise<void> pump(own_input& from, wire::ByteSink::Client to, std::function<void()> broke) {
  return from.read().then(
    [&from, to, broke = std::move(broke)](std::string bytes) mutable -> kj::Promise<void> {
      if (bytes.empty()) {
        if (from.failed() == 0)
          return to.endRequest().send().ignoreResult();
        broke();
        return kj::NEVER_DONE;
      }
      auto request = to.writeRequest();
      request.setBytes(wire::bytes(bytes));
      return request.send().then([&from, to, broke = std::move(broke)]() mutable {
        return pump(from, kj::mv(to), std::move(broke));
      });
    });
}

/// Writes what has not been streamed.
kj::Promise<void> write_rest(own_output& to, const std::string& kept) {
  return to.bytes() < kept.size() ? to.write(kept.substr(to.bytes())) : kj::READY_NOW;
}

/// Says so if that was not all.
kj::Promise<void>
say_if_cut(own_output& err, const char* name, std::uint64_t bytes, std::uint64_t all_bytes) {
  if (bytes >= all_bytes)
    return kj::READY_NOW;
  return err.write(fmt::format("dsec: {} was {} bytes, of which the first {} were kept\n", name,
                               all_bytes, bytes));
}

/// Of a command that was under way when the connection to the runtime broke.
exec_result lost_with_the_runtime(const kj::Exception& e) {
  exec_result x;
  x.outcome.kind = outcome_kind::node_lost;
  x.outcome.cause = "the runtime is gone, and what became of the command is unknown ("
                    + wire::broken("talk to the runtime", e).message + ")";
  return x;
}

} // namespace

int exit_code_of(const exec_result& x) {
  const auto& o = x.outcome;
  switch (o.kind) {
  case outcome_kind::exited:
    return o.code;
  case outcome_kind::signalled:
    return 128 + o.code;
  case outcome_kind::timed_out:
    complain("the deadline passed");
    return exit_late;
  case outcome_kind::oom_killed:
    complain("out of memory (limit {} bytes, peak {})", o.limit_bytes, o.peak_bytes);
    return exit_killed;
  case outcome_kind::disk_full:
    complain("the disk limit was reached ({} of {} bytes)", o.peak_bytes, o.limit_bytes);
    return o.code;
  case outcome_kind::pids_limit:
    complain("the process limit was reached");
    return o.code != 0 ? o.code : exit_not_invoked;
  default:
    break;
  }
  complain("{}{}{}", o.kind, o.cause.empty() ? "" : ": ", o.cause);
  bool ours = o.kind == outcome_kind::infrastructure || o.kind == outcome_kind::node_lost;
  return ours ? exit_failure : exit_killed;
}

int exit_code_of(const error& x) {
  switch (x.code) {
  case errc::no_program:
    return exit_no_program;
  case errc::not_executable:
    return exit_not_invoked;
  case errc::expired:
    return exit_killed;
  default:
    return exit_failure;
  }
}

result<exec_result> run_command(client& at, interrupts& heard, wire::Sandbox::Client in,
                                const exec_spec& spec, bool streamed_input, bool detached) {
  auto call = in.execRequest();
  auto request = call.initRequest();
  wire::write(spec, request);
  request.setDetached(detached);
  if (streamed_input)
    request.setStdin(wire::ExecRequest::Stdin::STREAMED);
  // The runtime may hold the sinks for longer than the command is waited for.
  auto own_out = std::make_shared<own_output>(1);
  auto own_err = std::make_shared<own_output>(2);
  auto &out = *own_out, &err = *own_err;
  wire::ByteSink::Client out_sink = kj::heap<printer>(own_out);
  wire::ByteSink::Client err_sink = kj::heap<printer>(own_err);
  call.setStdout(out_sink);
  call.setStderr(err_sink);
  auto started = call.send();
  auto exec = started.getExec();

  kj::Promise<void> cancelling = kj::READY_NOW;
  auto cancel = [&] {
    cancelling = exec.cancelRequest().send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
  };
  // Nobody reads what it says any more, as when a pipeline's next program has ended.
  if (!detached) {
    out.watch(cancel);
    err.watch(cancel);
  }

  kj::Promise<void> input = kj::READY_NOW;
  std::optional<own_input> from;
  if (streamed_input) {
    from.emplace(at);
    input = pump(*from, started.getStdin(), cancel).eagerlyEvaluate([](kj::Exception&&) {});
  }

  kj::Promise<void> signalling = kj::READY_NOW;
  auto gave_up = kj::newPromiseAndFulfiller<void>();
  kj::Promise<void> patience = kj::READY_NOW;
  heard.tell([&](int number, unsigned count) {
    if (count > 2)
      end_by_signal(number);
    if (count == 1) {
      auto forwarded = exec.signalRequest();
      forwarded.setNumber(number);
      signalling = forwarded.send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
      return;
    }
    cancel();
    out.drop();
    err.drop();
    patience = at.io.provider->getTimer()
                 .afterDelay(cancel_patience)
                 .then([&] {
                   gave_up.fulfiller->reject(
                     KJ_EXCEPTION(DISCONNECTED, "no answer after the command was cancelled"));
                 })
                 .eagerlyEvaluate(nullptr);
  });
  KJ_DEFER({
    heard.tell(nullptr);
    out.watch(nullptr);
    err.watch(nullptr);
  });

  using answer_type = capnp::Response<wire::ExecHandle::WaitResults>;
  std::optional<exec_result> lost;
  kj::Promise<answer_type> ended =
    exec.waitRequest().send().catch_([&](kj::Exception&& e) -> kj::Promise<answer_type> {
      lost = lost_with_the_runtime(e);
      return kj::mv(e);
    });
  auto given_up = gave_up.promise.then([]() -> kj::Promise<answer_type> { return kj::NEVER_DONE; });
  auto answer = wait(at, ended.exclusiveJoin(kj::mv(given_up)));
  // A step can be asked for again.
  if (!answer && lost && !spec.step)
    return *std::move(lost);
  if (!answer)
    return answer.error();
  auto x = wire::read(answer->getResult());
  // What came as a stream was handed to the sinks before the answer came; they take this behind it.
  // A recorded step does not stream: its output is in the result alone.
  auto taken = out_sink.endRequest().send().ignoreResult();
  taken =
    taken.then([&] { return err_sink.endRequest().send().ignoreResult(); })
      .then([&] { return write_rest(out, x.out); })
      .then([&] { return write_rest(err, x.err); })
      .then([&] {
        const auto err_bytes = err.bytes();
        return say_if_cut(err, "standard output", out.bytes(), x.out_bytes).then([&, err_bytes] {
          return say_if_cut(err, "standard error", err_bytes, x.err_bytes);
        });
      });
  taken.wait(at.io.waitScope);
  if (out.failed() != 0)
    return errno_error(out.failed(), "write standard output");
  if (err.failed() != 0)
    return errno_error(err.failed(), "write standard error");
  if (from && from->failed() != 0)
    return errno_error(from->failed(), "read standard input");
  return x;
}

result<std::string> read_input(std::size_t bytes_max) {
  std::string all;
  char buffer[stream_piece_bytes];
  for (;;) {
    auto n = ::read(0, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno_error(errno, "read standard input");
    if (n == 0)
      return all;
    all.append(buffer, static_cast<std::size_t>(n));
    if (all.size() > bytes_max)
      return error{errc::exhausted,
                   fmt::format("read standard input: more than {} bytes", bytes_max)};
  }
}

} // namespace dsec
