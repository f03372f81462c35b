#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"
#include "sdk/front/convert.hpp"
#include "sdk/front/event_stream.hpp"
#include "sdk/front/servers.hpp"

namespace dsec {

namespace {

create_options item(wire::CreateItem::Reader from) {
  return {wire::read(from.getEnvironment()), wire::text(from.getIdempotencyKey()),
          wire::read(from.getClocks())};
}

class job_server final : public wire::Job::Server {
public:
  job_server(io_loop& loop, job target) : loop_{loop}, target_{std::move(target)} {}

  kj::Promise<void> create(CreateContext context) override {
    return await(loop_, target_.create(item(context.getParams().getItem())))
      .then([this, context](result<sandbox> x) mutable {
        write(x, context.getResults().initCreated());
      });
  }

  kj::Promise<void> createBatch(CreateBatchContext context) override {
    std::vector<create_options> items;
    for (auto one : context.getParams().getItems())
      items.push_back(item(one));
    kj::Vector<kj::Promise<result<sandbox>>> made;
    for (const auto& each : target_.create_batch(std::move(items)))
      made.add(await(loop_, each));
    return kj::joinPromises(made.releaseAsArray())
      .then([this, context](kj::Array<result<sandbox>> all) mutable {
        auto to = context.getResults().initCreated(all.size());
        for (unsigned i = 0; i < to.size(); ++i)
          write(all[i], to[i]);
      });
  }

  kj::Promise<void> preempt(PreemptContext context) override {
    auto mode = context.getParams().getMode() == wire::Job::PreemptMode::UNTIL_RESUME
                  ? preempt_mode::until_resume
                  : preempt_mode::until_request;
    return await(loop_, target_.preempt(mode)).then([context](result<preempt_report> x) mutable {
      if (x)
        wire::write(*x, context.getResults().initReport());
      else
        wire::write(x.error(), context.getResults().initError());
    });
  }

  kj::Promise<void> resume(ResumeContext context) override {
    return await(loop_, target_.resume()).then([context](result<void> x) mutable {
      if (!x)
        wire::write(x.error(), context.getResults().initError());
    });
  }

  kj::Promise<void> close(CloseContext context) override {
    return await(loop_, target_.close()).then([context](result<void> x) mutable {
      if (!x)
        wire::write(x.error(), context.getResults().initError());
    });
  }

  kj::Promise<void> list(ListContext context) override {
    return await(loop_, target_.list(context.getParams().getWithEnded()))
      .then([context](result<std::vector<sandbox_info>> x) mutable {
        if (!x)
          return wire::write(x.error(), context.getResults().initError());
        auto to = context.getResults().initSandboxes(x->size());
        for (unsigned i = 0; i < to.size(); ++i)
          wire::write((*x)[i], to[i]);
      });
  }

  kj::Promise<void> events(EventsContext context) override {
    auto params = context.getParams();
    return await(loop_, target_.events(params.getCursor(), params.getCount()))
      .then([context](result<event_page> x) mutable {
        if (!x)
          return wire::write(x.error(), context.getResults().initError());
        auto results = context.getResults();
        auto to = results.initEvents(x->events.size());
        for (unsigned i = 0; i < to.size(); ++i)
          wire::write(x->events[i], to[i]);
        results.setNext(x->next);
        results.setOldest(x->oldest);
      });
  }

  kj::Promise<void> follow(FollowContext context) override {
    context.allowCancellation();
    auto params = context.getParams();
    auto stream = kj::heap<event_stream>(loop_, params.getListener());
    stream->begin(target_, params.getCursor());
    auto gone = stream->gone();
    return gone.attach(kj::mv(stream));
  }

private:
  void write(const result<sandbox>& from, wire::Created::Builder to) {
    if (!from)
      return wire::write(from.error(), to.initError());
    to.setId(from->id().str().c_str());
    to.setSandbox(serve_sandbox(loop_, *from));
  }

  io_loop& loop_;
  job target_;
};

} // namespace

wire::Job::Client serve_job(io_loop& loop, job target) {
  return kj::heap<job_server>(loop, std::move(target));
}

} // namespace dsec
