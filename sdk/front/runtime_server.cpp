#include "backends/container/build_id.hpp"
#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"
#include "sdk/front/convert.hpp"
#include "sdk/front/servers.hpp"

#include <unistd.h>

namespace dsec {

namespace {

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

private:
  io_loop& loop_;
  runtime& target_;
};

} // namespace

wire::Dsec::Client serve_runtime(io_loop& loop, runtime& target) {
  return kj::heap<runtime_server>(loop, target);
}

} // namespace dsec
