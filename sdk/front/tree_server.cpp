#include "sdk/front/tree_server.hpp"

#include "backends/container/wire.hpp"
#include "sdk/front/await.hpp"

#include <kj/debug.h>

#include <deque>
#include <utility>

namespace dsec {

namespace {

/// An archive on its way from a client to the backend; both are in the loop. One that loses its
/// client drops what the backend asks.
class client_archive final : public input_source {
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
    if (!left_)
      next_ = std::move(next);
  }

  kj::Promise<void> write(std::string bytes) {
    if (closed_ || ended_)
      return KJ_EXCEPTION(FAILED, "unpack: it has ended");
    if (bytes.empty())
      return kj::READY_NOW;
    if (auto next = std::exchange(next_, nullptr)) {
      next(std::move(bytes));
      return kj::READY_NOW;
    }
    auto pair = kj::newPromiseAndFulfiller<void>();
    written_.emplace_back(std::move(bytes), kj::mv(pair.fulfiller));
    return kj::mv(pair.promise);
  }

  void end() {
    ended_ = true;
    if (auto next = std::exchange(next_, nullptr))
      next({});
  }

  /// The client went before the archive's end.
  void leave() {
    if (ended_)
      return;
    left_ = true;
    next_ = nullptr;
    written_.clear();
  }

  /// Nobody reads any more.
  void close() {
    closed_ = true;
    next_ = nullptr;
    for (auto& [_, taken] : written_)
      taken->reject(KJ_EXCEPTION(FAILED, "unpack: it has ended"));
    written_.clear();
  }

private:
  std::deque<std::pair<std::string, kj::Own<kj::PromiseFulfiller<void>>>> written_;
  std::function<void(std::string)> next_;
  bool ended_ = false;
  bool left_ = false;
  bool closed_ = false;
};

class archive_sink_server final : public wire::ByteSink::Server {
public:
  explicit archive_sink_server(std::shared_ptr<client_archive> to) : to_{std::move(to)} {}

  ~archive_sink_server() {
    to_->leave();
  }

  kj::Promise<void> write(WriteContext context) override {
    return to_->write(wire::text(context.getParams().getBytes()));
  }

  kj::Promise<void> end(EndContext) override {
    to_->end();
    return kj::READY_NOW;
  }

private:
  std::shared_ptr<client_archive> to_;
};

class unpacking_server final : public wire::UnpackingHandle::Server {
public:
  unpacking_server(io_loop& loop, future<tree_report> done, std::shared_ptr<client_archive> archive)
    : done_{std::move(done)},
      ended_{await(loop, done_)
               .then([archive = std::move(archive)](auto) { archive->close(); })
               .fork()} {}

  kj::Promise<void> finish(FinishContext context) override {
    context.allowCancellation();
    return ended_.addBranch().then([context, done = done_]() mutable {
      if (auto x = done.get())
        wire::write(*x, context.getResults().initReport());
      else
        wire::write(x.error(), context.getResults().initError());
    });
  }

private:
  future<tree_report> done_;
  kj::ForkedPromise<void> ended_;
};

/// A client's sink as the runtime takes it. May be destroyed on any thread; what is KJ's is
/// destroyed in the loop.
class client_sink final : public archive_sink {
public:
  client_sink(io_loop& loop, wire::ByteSink::Client to)
    : parts_{new parts{loop, kj::mv(to)}, [&loop](parts* x) {
               loop.post([x] { delete x; });
             }} {}

  void write(std::string bytes, std::function<void()> ready) override {
    if (parts_->left)
      return;
    auto request = parts_->to.writeRequest();
    request.setBytes(wire::bytes(bytes));
    // Of a client that left, the question is dropped.
    parts_->loop.spawn(request.send().then([ready = std::move(ready), held = parts_] {
      if (!held->left)
        ready();
    }));
  }

  void leave() {
    parts_->left = true;
  }

  kj::Promise<void> end() {
    return parts_->to.endRequest().send().ignoreResult();
  }

private:
  struct parts {
    io_loop& loop;
    wire::ByteSink::Client to;
    bool left = false;
  };

  std::shared_ptr<parts> parts_;
};

} // namespace

void serve_unpack(io_loop& loop, const sandbox& target, unpack_context context) {
  auto archive = std::make_shared<client_archive>();
  auto done = target.unpack(wire::text(context.getParams().getPath()), archive);
  auto results = context.getResults();
  results.setArchive(kj::heap<archive_sink_server>(archive));
  results.setUnpacking(kj::heap<unpacking_server>(loop, std::move(done), std::move(archive)));
}

kj::Promise<void> serve_pack(io_loop& loop, const sandbox& target, pack_context context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto to = std::make_shared<client_sink>(loop, params.getArchive());
  auto done = target.pack(wire::text(params.getPath()), to);
  auto told =
    await(loop, done).then([context, to](result<tree_report> x) mutable -> kj::Promise<void> {
      if (!x) {
        wire::write(x.error(), context.getResults().initError());
        return kj::READY_NOW;
      }
      wire::write(*x, context.getResults().initReport());
      return to->end();
    });
  // Also when the client drops the call.
  return told.attach(kj::defer([to] { to->leave(); }));
}

} // namespace dsec
