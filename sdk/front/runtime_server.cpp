#include "backends/container/build_id.hpp"
#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"
#include "sdk/front/convert.hpp"
#include "sdk/front/servers.hpp"

#include <kj/debug.h>

#include <atomic>
#include <unistd.h>

namespace dsec {

namespace {

/// Changes on their way to one client. More than this many unsent, and the client is dropped from
/// the stream: it may list and subscribe again.
constexpr unsigned changes_behind_max = 100'000;

class runtime_server final : public wire::Dsec::Server {
public:
  runtime_server(io_loop& loop, runtime& target) : loop_{loop}, target_{target} {}

  kj::Promise<void> version(VersionContext context) override {
    context.getResults().setVersion(build_id("/proc/self/exe").c_str());
    context.getResults().setPid(::getpid());
    return kj::READY_NOW;
  }

  kj::Promise<void> openJob(OpenJobContext context) override {
    auto params = context.getParams();
    return await(loop_,
                 target_.open_job(wire::text(params.getName()), {wire::read(params.getLease())}))
      .then([this, context](result<dsec::job> x) mutable {
        if (x)
          context.getResults().setJob(serve_job(loop_, *x));
        else
          wire::write(x.error(), context.getResults().initError());
      });
  }

  kj::Promise<void> job(JobContext context) override {
    return await(loop_, target_.find_job(wire::text(context.getParams().getName())))
      .then([this, context](result<dsec::job> x) mutable {
        if (x)
          context.getResults().setJob(serve_job(loop_, *x));
        else
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

  kj::Promise<void> sandbox(SandboxContext context) override {
    return await(loop_, target_.find(sandbox_id{wire::text(context.getParams().getId())}))
      .then([this, context](result<dsec::sandbox> x) mutable {
        if (x)
          context.getResults().setSandbox(serve_sandbox(loop_, *x));
        else
          wire::write(x.error(), context.getResults().initError());
      });
  }

  kj::Promise<void> subscribe(SubscribeContext context) override {
    context.allowCancellation();
    auto stream = kj::heap<subscription>(loop_, context.getParams().getListener());
    auto gone = stream->gone();
    target_.subscribe([wanted = stream->wanted(), &loop = loop_](const sandbox_change& x) {
      if (wanted->alive)
        loop.post([wanted, x] {
          if (wanted->to)
            wanted->to->send(x);
        });
    });
    return gone.attach(kj::mv(stream));
  }

private:
  class subscription {
  public:
    struct link {
      std::atomic<bool> alive{true};
      subscription* to = nullptr; ///< Loop only.
    };

    subscription(io_loop& loop, wire::ChangeListener::Client listener)
      : loop_{loop},
        listener_{kj::mv(listener)},
        link_{std::make_shared<link>()} {
      link_->to = this;
      auto pair = kj::newPromiseAndFulfiller<void>();
      gone_ = kj::mv(pair.promise);
      fulfiller_ = kj::mv(pair.fulfiller);
    }

    ~subscription() {
      link_->alive = false;
      link_->to = nullptr;
    }

    std::shared_ptr<link> wanted() {
      return link_;
    }

    kj::Promise<void> gone() {
      return kj::mv(gone_);
    }

    void send(const sandbox_change& x) {
      if (++behind_ > changes_behind_max)
        return fulfiller_->reject(KJ_EXCEPTION(OVERLOADED, "subscribe: the listener is too slow"));
      auto request = listener_.changedRequest();
      wire::write(x, request.initChange());
      loop_.spawn(request.send().then(
        [wanted = link_] {
          if (wanted->to)
            --wanted->to->behind_;
        },
        [wanted = link_](kj::Exception&&) {
          if (wanted->to)
            wanted->to->fulfiller_->fulfill();
        }));
    }

  private:
    io_loop& loop_;
    wire::ChangeListener::Client listener_;
    std::shared_ptr<link> link_;
    kj::Promise<void> gone_ = nullptr;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
    unsigned behind_ = 0;
  };

  io_loop& loop_;
  runtime& target_;
};

} // namespace

wire::Dsec::Client serve_runtime(io_loop& loop, runtime& target) {
  return kj::heap<runtime_server>(loop, target);
}

} // namespace dsec
