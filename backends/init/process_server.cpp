#include "backends/init/init_server.hpp"
#include "backends/init/wire_error.hpp"

namespace dsec::init {

namespace {

class process_server final : public wire::Process::Server {
public:
  process_server(sandbox& in, kj::Own<process> of, kj::Own<admission> a)
    : sandbox_{in},
      process_{kj::mv(of)},
      admission_{kj::mv(a)} {}

  kj::Promise<void> wait(WaitContext context) override {
    admission_->check();
    context.allowCancellation();
    return process_->end().then([this, context]() mutable {
      process_->fill(context.getResults(process_->answer_size()).initResult());
    });
  }

  kj::Promise<void> attach(AttachContext context) override {
    admission_->check();
    context.allowCancellation();
    auto params = context.getParams();
    return process_->attach(params.getFrom(), params.getStdout(), params.getStderr());
  }

  kj::Promise<void> input(InputContext context) override {
    admission_->check();
    auto params = context.getParams();
    return process_->input(kj::heapArray<const kj::byte>(params.getBytes()), params.getEnd())
      .then([context](result<void>&& done) mutable {
        if (!done)
          init::fill(context.getResults().initError(), done.error());
      });
  }

  kj::Promise<void> resize(ResizeContext context) override {
    admission_->check();
    const auto params = context.getParams();
    return answer(context, process_->resize(params.getRows(), params.getColumns()));
  }

  kj::Promise<void> signal(SignalContext context) override {
    admission_->check();
    const auto params = context.getParams();
    return answer(context, process_->signal(params.getNumber(), params.getTree()));
  }

  kj::Promise<void> kill(KillContext) override {
    admission_->check();
    process_->kill();
    return kj::READY_NOW;
  }

  kj::Promise<void> remove(RemoveContext context) override {
    admission_->check();
    return answer(context, sandbox_.processes.remove(process_->id()));
  }

private:
  template <class Context>
  static kj::Promise<void> answer(Context context, const result<void>& done) {
    if (!done)
      init::fill(context.getResults().initError(), done.error());
    return kj::READY_NOW;
  }

  sandbox& sandbox_;
  kj::Own<process> process_;
  kj::Own<admission> admission_;
};

} // namespace

kj::Promise<void> spawn_process(sandbox& in, kj::Own<admission> admitted, spawn_context context) {
  auto idle = in.freeze.idle();
  return idle.then([&in, admitted = kj::mv(admitted), context]() mutable -> kj::Promise<void> {
    admitted->check();
    const auto params = context.getParams();
    const auto id = params.getId();
    if (in.freeze.phase() != freezer::phase_type::RUNNING && in.processes.find(id) == nullptr) {
      fill(context.getResults().initError(),
           {errc::invalid_state,
            "start process " + std::to_string(id) + ": the sandbox is paused, resume it first"});
      return kj::READY_NOW;
    }
    return in.processes.spawn(id, params)
      .then([&in, admitted = kj::mv(admitted), context](result<kj::Own<process>>&& made) mutable {
        auto answer = context.getResults(capnp::MessageSize{64, 1});
        if (made)
          answer.setProcess(kj::heap<process_server>(in, kj::mv(*made), kj::mv(admitted)));
        else
          fill(answer.initError(), made.error());
      });
  });
}

void find_process(sandbox& in, kj::Own<admission> admitted, process_context context) {
  const auto id = context.getParams().getId();
  KJ_IF_MAYBE (known, in.processes.find(id)) {
    context.getResults().setProcess(kj::heap<process_server>(in, kj::mv(*known), kj::mv(admitted)));
    return;
  }
  fill(context.getResults().initError(),
       {errc::not_found, "process " + std::to_string(id) + ": there is none of this id"});
}

} // namespace dsec::init
