#include "sdk/cli/command_io.hpp"

#include "backends/container/byte_stream.hpp"
#include "sdk/front/convert.hpp"
#include "state/format.hpp"

#include <kj/async-unix.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <thread>
#include <unistd.h>

namespace dsec {

namespace {

/// The terminal or pipe takes what it takes; meanwhile nothing more is asked of the command.
/// Returns 0 or an errno value.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

/// One of this program's output streams.
struct output {
  int fd;
  std::uint64_t bytes = 0; ///< Of the command's, as far as they came.
  int failed = 0;          ///< Why nothing more can be written; an errno value.
  std::function<void()> on_failure = [] {
  };

  void write(std::string_view text) {
    bytes += text.size();
    if (failed == 0 && (failed = write_all(fd, text)) != 0)
      on_failure();
  }
};

class printer final : public wire::ByteSink::Server {
public:
  explicit printer(output& to) : to_{to} {}

  kj::Promise<void> write(WriteContext context) override {
    auto bytes = context.getParams().getBytes();
    to_.write({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
    return kj::READY_NOW;
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  output& to_;
};

/// Standard input as a pipe: a file cannot be waited for, and a terminal must not be made
/// non-blocking for everybody who shares it.
int input_as_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0)
    return -1;
  std::thread{[to = ends[1]] {
    char buffer[stream_piece_bytes];
    for (;;) {
      auto n = ::read(0, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        break;
      if (write_all(to, {buffer, static_cast<std::size_t>(n)}) != 0)
        break;
    }
    ::close(to);
  }}.detach();
  return ends[0];
}

kj::Promise<void>
pump(kj::AsyncInputStream& from, wire::ByteSink::Client to, kj::ArrayPtr<kj::byte> buffer) {
  return from.tryRead(buffer.begin(), 1, buffer.size())
    .then([&from, to, buffer](std::size_t n) mutable -> kj::Promise<void> {
      if (n == 0)
        return to.endRequest().send().ignoreResult();
      auto request = to.writeRequest();
      request.setBytes(buffer.slice(0, n));
      return request.send().then(
        [&from, to, buffer]() mutable { return pump(from, kj::mv(to), buffer); });
    });
}

/// Writes what has not been streamed, and says so if that is not all.
void finish(const char* name, output& to, const std::string& kept, std::uint64_t all_bytes) {
  if (to.bytes < kept.size())
    to.write(std::string_view{kept}.substr(to.bytes));
  if (to.bytes < all_bytes)
    fmt::print(stderr, "dsec: {} was {} bytes, of which the first {} were kept\n", name, all_bytes,
               to.bytes);
}

/// The first signal is the command's; a second one ends this program.
kj::Promise<void> forward(client& at, wire::ExecHandle::Client to, int number) {
  return at.io.unixEventPort.onSignal(number).then([to, number](siginfo_t) mutable {
    std::signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    auto request = to.signalRequest();
    request.setNumber(number);
    return request.send().ignoreResult();
  });
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
    fmt::print(stderr, "dsec: the deadline passed\n");
    return exit_late;
  case outcome_kind::oom_killed:
    fmt::print(stderr, "dsec: out of memory (limit {} bytes, peak {})\n", o.limit_bytes,
               o.peak_bytes);
    return exit_killed;
  case outcome_kind::disk_full:
    fmt::print(stderr, "dsec: the disk limit was reached ({} of {} bytes)\n", o.peak_bytes,
               o.limit_bytes);
    return o.code;
  case outcome_kind::pids_limit:
    fmt::print(stderr, "dsec: the process limit was reached\n");
    return o.code != 0 ? o.code : exit_not_invoked;
  default:
    break;
  }
  fmt::print(stderr, "dsec: {}{}{}\n", o.kind, o.cause.empty() ? "" : ": ", o.cause);
  bool ours = o.kind == outcome_kind::infrastructure || o.kind == outcome_kind::node_lost;
  return ours ? exit_failure : exit_killed;
}

int exit_code_of(const error& x) {
  switch (x.code) {
  case errc::no_program:
    return exit_no_program;
  case errc::not_executable:
    return exit_not_invoked;
  default:
    return exit_failure;
  }
}

result<exec_result> run_command(client& at, wire::Sandbox::Client in, const exec_spec& spec,
                                bool streamed_input, bool detached) {
  for (int number : {SIGINT, SIGTERM})
    kj::UnixEventPort::captureSignal(number);
  auto call = in.execRequest();
  auto request = call.initRequest();
  wire::write(spec, request);
  request.setDetached(detached);
  if (streamed_input)
    request.setStdin(wire::ExecRequest::Stdin::STREAMED);
  output out{1};
  output err{2};
  call.setStdout(kj::heap<printer>(out));
  call.setStderr(kj::heap<printer>(err));
  auto started = call.send();
  auto exec = started.getExec();

  // Nobody reads what it says any more, as when a pipeline's next program has ended.
  kj::Promise<void> cancelling = kj::READY_NOW;
  if (!detached)
    out.on_failure = err.on_failure = [&] {
      cancelling =
        exec.cancelRequest().send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
    };

  kj::Promise<void> input = kj::READY_NOW;
  auto buffer = kj::heapArray<kj::byte>(stream_piece_bytes);
  kj::Own<kj::AsyncInputStream> from;
  if (streamed_input) {
    if (int fd = input_as_pipe(); fd >= 0) {
      from =
        at.io.lowLevelProvider->wrapInputFd(fd, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP
                                                  | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
      input = pump(*from, started.getStdin(), buffer).eagerlyEvaluate([](kj::Exception&&) {});
    }
  }
  auto interrupted = forward(at, exec, SIGINT).eagerlyEvaluate([](kj::Exception&&) {});
  auto ended = forward(at, exec, SIGTERM).eagerlyEvaluate([](kj::Exception&&) {});

  auto answer = wait(at, exec.waitRequest().send());
  if (!answer)
    return answer.error();
  auto x = wire::read(answer->getResult());
  // A recorded step does not stream: its output is in the result alone.
  finish("standard output", out, x.out, x.out_bytes);
  finish("standard error", err, x.err, x.err_bytes);
  if (out.failed != 0)
    return errno_error(out.failed, "write standard output");
  if (err.failed != 0)
    return errno_error(err.failed, "write standard error");
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
