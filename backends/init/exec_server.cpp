#include "backends/init/init_server.hpp"
#include "backends/init/wire_error.hpp"

namespace dsec::init {

namespace {

/// A writer that goes without saying `end` has died; the command must not wait for it.
class stdin_sink final : public wire::ByteSink::Server {
public:
  stdin_sink(kj::Own<command> run, kj::Own<admission> a)
    : command_{kj::mv(run)},
      admission_{kj::mv(a)} {}

  ~stdin_sink() noexcept(false) {
    KJ_IF_MAYBE (in, command_->input()) {
      in->close();
    }
  }

  kj::Promise<void> write(WriteContext context) override {
    admission_->check();
    KJ_IF_MAYBE (in, command_->input()) {
      return in->write(kj::heapArray<const kj::byte>(context.getParams().getBytes()));
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> end(EndContext) override {
    admission_->check();
    KJ_IF_MAYBE (in, command_->input()) {
      in->close();
    }
    return kj::READY_NOW;
  }

private:
  kj::Own<command> command_;
  kj::Own<admission> admission_;
};

class exec_server final : public wire::Exec::Server {
public:
  exec_server(kj::Own<command> run, kj::Own<admission> a)
    : command_{kj::mv(run)},
      admission_{kj::mv(a)} {}

  ~exec_server() noexcept(false) {
    command_->let_output_go();
  }

  kj::Promise<void> wait(WaitContext context) override {
    admission_->check();
    context.allowCancellation();
    return command_->finished().then(
      [this, context]() mutable { command_->fill(context.getResults().initResult()); });
  }

  kj::Promise<void> stdin(StdinContext context) override {
    admission_->check();
    context.getResults().setSink(
      kj::heap<stdin_sink>(kj::addRef(*command_), kj::addRef(*admission_)));
    return kj::READY_NOW;
  }

  kj::Promise<void> signal(SignalContext context) override {
    admission_->check();
    if (auto ok = command_->signal(context.getParams().getNumber()); !ok)
      fill(context.getResults().initError(), ok.error());
    return kj::READY_NOW;
  }

  kj::Promise<void> cancel(CancelContext) override {
    admission_->check();
    command_->cancel();
    return kj::READY_NOW;
  }

  kj::Promise<void> attach(AttachContext context) override {
    admission_->check();
    context.allowCancellation();
    auto params = context.getParams();
    return command_->attach(params.getStdout(), params.getStderr());
  }

private:
  kj::Own<command> command_;
  kj::Own<admission> admission_;
};

} // namespace

wire::Exec::Client make_exec_server(kj::Own<command> run, kj::Own<admission> admitted) {
  return kj::heap<exec_server>(kj::mv(run), kj::mv(admitted));
}

} // namespace dsec::init
