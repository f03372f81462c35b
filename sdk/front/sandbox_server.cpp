#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"
#include "sdk/front/convert.hpp"
#include "sdk/front/exec_handle.hpp"
#include "sdk/front/process_server.hpp"
#include "sdk/front/servers.hpp"
#include "sdk/front/tree_server.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec {

namespace {

constexpr std::uint64_t read_bytes_max = 4 << 20;

/// Of a command that cannot be begun.
class refused_exec final : public wire::ExecHandle::Server {
public:
  explicit refused_exec(error why) : why_{std::move(why)} {}

  kj::Promise<void> wait(WaitContext context) override {
    wire::write(why_, context.getResults().initError());
    return kj::READY_NOW;
  }

  kj::Promise<void> signal(SignalContext) override {
    return kj::READY_NOW;
  }

  kj::Promise<void> cancel(CancelContext) override {
    return kj::READY_NOW;
  }

private:
  error why_;
};

/// Of a client whose sandbox does not outlive it.
class sandbox_hold final : public wire::SandboxHold::Server {
public:
  explicit sandbox_hold(sandbox target) : target_{std::move(target)} {}

  ~sandbox_hold() {
    (void)target_.stop();
  }

private:
  sandbox target_;
};

class sandbox_server final : public wire::Sandbox::Server {
public:
  sandbox_server(io_loop& loop, sandbox target) : loop_{loop}, target_{std::move(target)} {}

  kj::Promise<void> exec(ExecContext context) override {
    auto params = context.getParams();
    auto request = params.getRequest();
    auto spec = wire::read(request);
    bool streamed_input = request.getStdin() == wire::ExecRequest::Stdin::STREAMED;
    if (spec.step && streamed_input) {
      context.getResults().setExec(kj::heap<refused_exec>(error{
        errc::invalid_argument,
        fmt::format("exec: stdin of step {} is streamed; a step's is given whole", *spec.step)}));
      return kj::READY_NOW;
    }
    auto dropped = request.getDetached() || spec.step ? exec_handle::when_dropped::keep
                                                      : exec_handle::when_dropped::cancel;
    std::shared_ptr<client_streams> streams;
    if (params.hasStdout() || params.hasStderr() || streamed_input)
      streams =
        std::make_shared<client_streams>(loop_, params.getStdout(), params.hasStdout(),
                                         params.getStderr(), params.hasStderr(), streamed_input);
    auto started = target_.start(std::move(spec), streams);
    auto results = context.getResults();
    if (streamed_input)
      results.setStdin(streams->input_sink());
    results.setExec(kj::heap<exec_handle>(loop_, std::move(started), std::move(streams), dropped));
    return kj::READY_NOW;
  }

  kj::Promise<void> spawn(SpawnContext context) override {
    return spawn_process(loop_, target_, context);
  }

  kj::Promise<void> processes(ProcessesContext context) override {
    return list_processes(loop_, target_, context);
  }

  kj::Promise<void> process(ProcessContext context) override {
    return find_process(loop_, target_, context);
  }

  kj::Promise<void> readFile(ReadFileContext context) override {
    auto params = context.getParams();
    auto limit =
      params.getBytesMax() ? std::min(params.getBytesMax(), read_bytes_max) : read_bytes_max;
    return answer(target_.read(wire::text(params.getPath()), limit), context,
                  [](const std::string& x, auto results) { results.setBytes(wire::bytes(x)); });
  }

  kj::Promise<void> writeFile(WriteFileContext context) override {
    auto params = context.getParams();
    return answer(target_.write(wire::text(params.getPath()), wire::text(params.getBytes()),
                                {.mode = params.getMode() ? params.getMode() : 0644}),
                  context);
  }

  kj::Promise<void> listFiles(ListFilesContext context) override {
    return answer(target_.list(wire::text(context.getParams().getPath())), context,
                  [](const std::vector<directory_entry>& x, auto results) {
                    auto entries = results.initEntries(x.size());
                    for (unsigned i = 0; i < entries.size(); ++i)
                      wire::write(x[i], entries[i]);
                  });
  }

  kj::Promise<void> stat(StatContext context) override {
    return answer(target_.stat(wire::text(context.getParams().getPath())), context,
                  [](const file_status& x, auto results) { wire::write(x, results.initStatus()); });
  }

  kj::Promise<void> unpack(UnpackContext context) override {
    serve_unpack(loop_, target_, context);
    return kj::READY_NOW;
  }

  kj::Promise<void> pack(PackContext context) override {
    return serve_pack(loop_, target_, context);
  }

  kj::Promise<void> pause(PauseContext context) override {
    return answer(target_.pause(context.getParams().getReclaim()), context);
  }

  kj::Promise<void> resume(ResumeContext context) override {
    return answer(target_.resume(), context);
  }

  kj::Promise<void> stop(StopContext context) override {
    return answer(target_.stop(), context);
  }

  kj::Promise<void> info(InfoContext context) override {
    return answer(target_.info(), context,
                  [](const sandbox_info& x, auto results) { wire::write(x, results.initInfo()); });
  }

  kj::Promise<void> stats(StatsContext context) override {
    return answer(target_.stats(), context, [](const sandbox_stats& x, auto results) {
      wire::write(x, results.initStats());
    });
  }

  kj::Promise<void> setClocks(SetClocksContext context) override {
    return answer(target_.set_clocks(wire::read(context.getParams().getClocks())), context);
  }

  kj::Promise<void> hold(HoldContext context) override {
    context.getResults().setHold(kj::heap<sandbox_hold>(target_));
    return kj::READY_NOW;
  }

  kj::Promise<void> log(LogContext context) override {
    auto params = context.getParams();
    if (params.getHasStep())
      return answer(target_.step(params.getWithOutputOf()), context,
                    [](const step_record& x, auto results) { write(x, results.initSteps(1)[0]); });
    return answer(target_.trajectory(), context,
                  [](const std::vector<step_record>& x, auto results) {
                    auto steps = results.initSteps(x.size());
                    for (unsigned i = 0; i < steps.size(); ++i)
                      write(x[i], steps[i]);
                  });
  }

private:
  static void write(const step_record& from, wire::StepInfo::Builder to) {
    to.setStep(from.step);
    to.setEnded(from.result.has_value());
    if (from.result)
      wire::write(*from.result, to.initResult());
  }

  template <class T, class Context, class Write>
  kj::Promise<void> answer(const future<T>& of, Context context, Write put) {
    return await(loop_, of).then([context, put](result<T> x) mutable {
      if (x)
        put(*x, context.getResults());
      else
        wire::write(x.error(), context.getResults().initError());
    });
  }

  template <class Context>
  kj::Promise<void> answer(const future<void>& of, Context context) {
    return await(loop_, of).then([context](result<void> x) mutable {
      if (!x)
        wire::write(x.error(), context.getResults().initError());
    });
  }

  io_loop& loop_;
  sandbox target_;
};

} // namespace

wire::Sandbox::Client serve_sandbox(io_loop& loop, sandbox target) {
  return kj::heap<sandbox_server>(loop, std::move(target));
}

} // namespace dsec
