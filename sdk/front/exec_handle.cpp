#include "sdk/front/exec_handle.hpp"

#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"

#include <deque>

namespace dsec {

namespace {

/// Standard input on its way from a client to the backend; both are in the loop.
class input_pipe final : public input_source {
public:
  void read(std::function<void(std::string)> next) override {
    if (!written_.empty()) {
      auto [bytes, taken] = std::move(written_.front());
      written_.pop_front();
      taken->fulfill();
      return next(std::move(bytes));
    }
    if (ended_)
      return next({});
    next_ = std::move(next);
  }

  kj::Promise<void> write(std::string bytes) {
    if (ended_ || bytes.empty())
      return kj::READY_NOW;
    if (next_) {
      auto next = std::move(next_);
      next_ = nullptr;
      next(std::move(bytes));
      return kj::READY_NOW;
    }
    auto pair = kj::newPromiseAndFulfiller<void>();
    written_.emplace_back(std::move(bytes), kj::mv(pair.fulfiller));
    return kj::mv(pair.promise);
  }

  void end() {
    ended_ = true;
    if (next_ && written_.empty())
      std::exchange(next_, nullptr)({});
  }

  void drop() {
    end();
    for (auto& [_, taken] : written_)
      taken->fulfill();
    written_.clear();
  }

private:
  std::deque<std::pair<std::string, kj::Own<kj::PromiseFulfiller<void>>>> written_;
  std::function<void(std::string)> next_;
  bool ended_ = false;
};

class input_sink_server final : public wire::ByteSink::Server {
public:
  explicit input_sink_server(std::shared_ptr<input_pipe> to) : to_{std::move(to)} {}

  ~input_sink_server() {
    to_->end();
  }

  kj::Promise<void> write(WriteContext context) override {
    return to_->write(wire::text(context.getParams().getBytes()));
  }

  kj::Promise<void> end(EndContext) override {
    to_->end();
    return kj::READY_NOW;
  }

private:
  std::shared_ptr<input_pipe> to_;
};

} // namespace

struct client_streams::parts {
  io_loop& loop;
  wire::ByteSink::Client out;
  bool has_out;
  wire::ByteSink::Client err;
  bool has_err;
  std::shared_ptr<input_pipe> input = std::make_shared<input_pipe>();
};

client_streams::client_streams(io_loop& loop, wire::ByteSink::Client out, bool has_out,
                               wire::ByteSink::Client err, bool has_err, bool has_input)
  : parts_{new parts{loop, kj::mv(out), has_out, kj::mv(err), has_err},
           [&loop](parts* x) {
             loop.post([x] { delete x; });
           }},
    has_input_{has_input} {}

void client_streams::write(stream which, std::string bytes, std::function<void()> ready) {
  if (!(which == stream::out ? parts_->has_out : parts_->has_err))
    return ready();
  auto request = (which == stream::out ? parts_->out : parts_->err).writeRequest();
  request.setBytes(wire::bytes(bytes));
  // A client that left takes everything: its command is cancelled, or goes on without it.
  parts_->loop.spawn(request.send().catch_([](kj::Exception&&) {}).then(std::move(ready)));
}

std::shared_ptr<input_source> client_streams::input() {
  if (!has_input_)
    return nullptr;
  return {parts_, parts_->input.get()};
}

wire::ByteSink::Client client_streams::input_sink() {
  return kj::heap<input_sink_server>(parts_->input);
}

void client_streams::close_input() {
  parts_->input->drop();
}

exec_handle::exec_handle(io_loop& loop, running_exec exec, std::shared_ptr<client_streams> streams,
                         when_dropped dropped)
  : exec_{std::move(exec)},
    ended_{await(loop, exec_.result())
             .then([streams = std::move(streams)](auto) {
               if (streams)
                 streams->close_input();
             })
             .fork()},
    dropped_{dropped} {}

exec_handle::~exec_handle() {
  if (dropped_ == when_dropped::cancel && !exec_.result().ready())
    exec_.cancel();
}

kj::Promise<void> exec_handle::wait(WaitContext context) {
  context.allowCancellation();
  return ended_.addBranch().then([context, answer = exec_.result()]() mutable {
    if (auto x = answer.get())
      wire::write(*x, context.getResults().initResult());
    else
      wire::write(x.error(), context.getResults().initError());
  });
}

kj::Promise<void> exec_handle::signal(SignalContext context) {
  exec_.signal(context.getParams().getNumber());
  return kj::READY_NOW;
}

kj::Promise<void> exec_handle::cancel(CancelContext) {
  exec_.cancel();
  return kj::READY_NOW;
}

} // namespace dsec
