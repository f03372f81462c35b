#include "sdk/front/process_server.hpp"

#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"
#include "sdk/front/convert.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec {

namespace {

/// Where a client wants the output of a process. May be destroyed on any thread; what is KJ's is
/// destroyed in the loop.
class client_watch final : public output_sink {
public:
  client_watch(io_loop& loop, wire::LossySink::Client out, wire::LossySink::Client err)
    : sinks_{new sinks{loop, kj::mv(out), kj::mv(err)}, [&loop](sinks* x) {
               loop.post([x] { delete x; });
             }} {}

  void write(stream which, std::string bytes, std::function<void()> ready) override {
    auto request = sink(which).writeRequest();
    request.setBytes(wire::bytes(bytes));
    // A client that left takes everything, until its going detaches it.
    sinks_->loop.spawn(request.send().catch_([](kj::Exception&&) {}).then(std::move(ready)));
  }

  void skipped(stream which, std::uint64_t bytes) override {
    auto request = sink(which).skippedRequest();
    request.setBytes(bytes);
    sinks_->loop.spawn(request.send().catch_([](kj::Exception&&) {}));
  }

  /// Answers when the client has taken all that it was sent.
  kj::Promise<void> end() {
    auto tell = [](wire::LossySink::Client& to) {
      return to.endRequest().send().ignoreResult().catch_([](kj::Exception&&) {});
    };
    return tell(sinks_->out).then([tell, sinks = sinks_] { return tell(sinks->err); });
  }

private:
  struct sinks {
    io_loop& loop;
    wire::LossySink::Client out, err;
  };

  wire::LossySink::Client& sink(stream which) {
    return which == stream::out ? sinks_->out : sinks_->err;
  }

  std::shared_ptr<sinks> sinks_;
};

class process_handle final : public wire::ProcessHandle::Server {
public:
  process_handle(io_loop& loop, process of) : loop_{loop}, process_{std::move(of)} {}

  kj::Promise<void> wait(WaitContext context) override {
    context.allowCancellation();
    return await(loop_, process_.wait()).then([context](result<exec_result> x) mutable {
      if (x)
        wire::write(*x, context.getResults().initResult());
      else
        wire::write(x.error(), context.getResults().initError());
    });
  }

  kj::Promise<void> attach(AttachContext context) override {
    context.allowCancellation();
    auto params = context.getParams();
    auto watch = std::make_shared<client_watch>(loop_, params.getStdout(), params.getStderr());
    auto from = params.getFrom() == wire::AttachFrom::TAIL ? attach_from::tail : attach_from::start;
    auto held = process_.attach(watch, from);
    // However the call ends, the client's going included.
    auto detach = kj::defer([held]() mutable { held.detach(); });
    return await(loop_, held.ended())
      .then([context, watch](result<void> x) mutable -> kj::Promise<void> {
        if (x)
          return watch->end();
        wire::write(x.error(), context.getResults().initError());
        return kj::READY_NOW;
      })
      .attach(kj::mv(detach));
  }

  kj::Promise<void> input(InputContext context) override {
    auto params = context.getParams();
    return answer(process_.write(wire::text(params.getBytes()), params.getEnd()), context);
  }

  kj::Promise<void> resize(ResizeContext context) override {
    auto params = context.getParams();
    return answer(process_.resize({params.getRows(), params.getColumns()}), context);
  }

  kj::Promise<void> signal(SignalContext context) override {
    auto params = context.getParams();
    return answer(process_.signal(params.getNumber(), params.getTree()), context);
  }

  kj::Promise<void> kill(KillContext context) override {
    return answer(process_.kill(), context);
  }

  kj::Promise<void> remove(RemoveContext context) override {
    return answer(process_.remove(), context);
  }

private:
  template <class Context>
  kj::Promise<void> answer(const future<void>& of, Context context) {
    return await(loop_, of).then([context](result<void> x) mutable {
      if (!x)
        wire::write(x.error(), context.getResults().initError());
    });
  }

  io_loop& loop_;
  process process_;
};

} // namespace

kj::Promise<void> spawn_process(io_loop& loop, const sandbox& in, spawn_call context) {
  auto params = context.getParams();
  auto terms = params.getTerms();
  process_spec spec;
  spec.name = wire::text(terms.getName());
  spec.command = wire::read(params.getRequest());
  spec.open_input = params.getOpenInput();
  if (terms.getTerminal())
    spec.terminal = terminal_size{terms.getRows(), terms.getColumns()};
  return await(loop, in.spawn(std::move(spec))).then([&loop, context](result<process> x) mutable {
    if (x) {
      context.getResults().setId(x->id());
      context.getResults().setProcess(kj::heap<process_handle>(loop, *x));
    } else {
      wire::write(x.error(), context.getResults().initError());
    }
  });
}

kj::Promise<void> list_processes(io_loop& loop, const sandbox& in, processes_call context) {
  return await(loop, in.processes()).then([context](result<std::vector<process_info>> x) mutable {
    if (!x)
      return wire::write(x.error(), context.getResults().initError());
    auto all = context.getResults().initProcesses(x->size());
    for (unsigned i = 0; i < all.size(); ++i)
      wire::write((*x)[i], all[i]);
  });
}

kj::Promise<void> find_process(io_loop& loop, const sandbox& in, process_call context) {
  auto params = context.getParams();
  auto name = wire::text(params.getName());
  auto id = name.empty() ? kj::Promise<result<exec_id>>{result<exec_id>{params.getId()}}
                         : await(loop, in.find_process(name)).then([](result<process> x) {
                             return x ? result<exec_id>{x->id()} : result<exec_id>{x.error()};
                           });
  return id.then([&loop, in, context](result<exec_id> found) mutable -> kj::Promise<void> {
    if (!found) {
      wire::write(found.error(), context.getResults().initError());
      return kj::READY_NOW;
    }
    return await(loop, in.processes())
      .then([&loop, in, context, wanted = *found](result<std::vector<process_info>> all) mutable {
        if (!all)
          return wire::write(all.error(), context.getResults().initError());
        auto one = std::ranges::find(*all, wanted, &process_info::id);
        if (one == all->end())
          return wire::write(error{errc::not_found,
                                   fmt::format("process {} of {}: there is none", wanted, in.id())},
                             context.getResults().initError());
        auto answer = context.getResults();
        answer.setProcess(kj::heap<process_handle>(loop, in.find_process(wanted)));
        wire::write(*one, answer.initInfo());
      });
  });
}

} // namespace dsec
