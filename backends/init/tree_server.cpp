#include "backends/init/tree_server.hpp"

#include "backends/exception_text.hpp"
#include "backends/init/init_server.hpp"
#include "backends/init/tree_errand.hpp"
#include "backends/init/wire_error.hpp"

#include <kj/debug.h>

#include <optional>

namespace dsec::init {

namespace {

void fill_report(wire::TreeReport::Builder to, const tree_report& from) {
  to.setEntries(from.entries);
  to.setBytes(from.bytes);
  to.setRefusedTotal(from.refused_total);
  auto list = to.initRefused(static_cast<unsigned>(from.refused.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setPath(data_of(from.refused[i].path));
    list[i].setWhy(from.refused[i].why.c_str());
  }
}

/// Shared by what takes the archive and what tells the outcome; the process ends when neither is
/// needed any more.
class unpacking_state : public kj::Refcounted {
public:
  explicit unpacking_state(kj::Own<tree_errand> work) : work_{kj::mv(work)} {}

  kj::Maybe<kj::Own<tree_errand>> work() {
    if (!work_)
      return nullptr;
    return kj::addRef(*work_);
  }

  /// The writer died: no part of an archive is taken for a whole one.
  void abandon() {
    if (work_)
      work_->cancel();
    work_ = nullptr;
  }

private:
  kj::Own<tree_errand> work_;
};

class archive_sink final : public wire::ByteSink::Server {
public:
  archive_sink(kj::Own<unpacking_state> state, kj::Own<admission> a)
    : state_{kj::mv(state)},
      admission_{kj::mv(a)} {}

  ~archive_sink() noexcept(false) {
    // A process that takes no more is about to tell why.
    if (!ended_ && !refused_)
      state_->abandon();
  }

  kj::Promise<void> write(WriteContext context) override {
    admission_->check();
    KJ_IF_MAYBE (work, state_->work()) {
      auto& errand = **work;
      auto bytes = kj::heapArray<const kj::byte>(context.getParams().getBytes());
      context.releaseParams();
      return errand.archive()
        .write(kj::mv(bytes))
        .then([this, &errand] {
          refused_ = !errand.archive().open();
          if (refused_)
            kj::throwRecoverableException(KJ_EXCEPTION(FAILED, "unpack: it has ended"));
        })
        .attach(kj::mv(*work));
    }
    return KJ_EXCEPTION(FAILED, "unpack: it has ended");
  }

  kj::Promise<void> end(EndContext) override {
    admission_->check();
    ended_ = true;
    KJ_IF_MAYBE (work, state_->work()) {
      (*work)->archive().close();
    }
    return kj::READY_NOW;
  }

private:
  kj::Own<unpacking_state> state_;
  kj::Own<admission> admission_;
  bool ended_ = false;
  bool refused_ = false;
};

class unpacking_server final : public wire::Unpacking::Server {
public:
  unpacking_server(kj::Own<unpacking_state> state, kj::Own<admission> a)
    : state_{kj::mv(state)},
      admission_{kj::mv(a)} {}

  ~unpacking_server() noexcept(false) {
    state_->abandon();
  }

  kj::Promise<void> finish(FinishContext context) override {
    admission_->check();
    context.allowCancellation();
    KJ_IF_MAYBE (work, state_->work()) {
      return (*work)->finished().then([context](result<tree_report>&& done) mutable {
        if (done)
          fill_report(context.getResults().initReport(), *done);
        else
          fill(context.getResults().initError(), done.error());
      });
    }
    fill(context.getResults().initError(),
         {errc::unavailable, "unpack: whoever wrote the archive has left"});
    return kj::READY_NOW;
  }

private:
  kj::Own<unpacking_state> state_;
  kj::Own<admission> admission_;
};

class replacing_server final : public wire::Replacing::Server {
public:
  replacing_server(kj::Own<replacement> work, std::string path, kj::Own<admission> a)
    : work_{kj::mv(work)},
      path_{std::move(path)},
      admission_{kj::mv(a)} {}

  kj::Promise<void> write(WriteContext context) override {
    admission_->check();
    if (over_)
      return refuse(context.getResults().initError());
    auto ok = append_to(work_->file(), end_, context.getParams().getBytes());
    if (ok)
      return kj::READY_NOW;
    over_ = ok.error();
    // Whoever is told that the disk is full finds it no fuller than before.
    return work_->abandon().then(
      [this, context]() mutable { return refuse(context.getResults().initError()); });
  }

  kj::Promise<void> finish(FinishContext context) override {
    admission_->check();
    if (over_)
      return refuse(context.getResults().initError());
    over_ = {errc::invalid_state, "replace: it is done"};
    return work_->finish().then([context, path = path_](result<int>&& done) mutable {
      if (!done)
        fill(context.getResults().initError(), done.error());
      else if (*done != 0)
        fill(context.getResults().initError(), file_error(*done, "replace", path));
    });
  }

private:
  kj::Promise<void> refuse(wire::Error::Builder to) const {
    fill(to, *over_);
    return kj::READY_NOW;
  }

  kj::Own<replacement> work_;
  std::string path_;
  kj::Own<admission> admission_;
  off_t end_ = 0;
  std::optional<error> over_; ///< Why nothing more can be done with it.
};

/// Until the pipe has no more, or the sink takes no more.
kj::Promise<void> pump(kj::Own<tree_errand> work, wire::ByteSink::Client to) {
  auto& errand = *work;
  return errand.read().then(
    [work = kj::mv(work), to = kj::mv(to)](kj::Array<kj::byte>&& piece) mutable {
      if (piece.size() == 0)
        return kj::Promise<void>{kj::READY_NOW};
      auto request = to.writeRequest(capnp::MessageSize{piece.size() / 8 + 16, 0});
      request.setBytes(piece);
      return request.send().then([work = kj::mv(work), to = kj::mv(to)]() mutable {
        return pump(kj::mv(work), kj::mv(to));
      });
    });
}

} // namespace

void unpack_tree(sandbox& in, kj::Own<admission> admitted, std::string path,
                 unpack_context context) {
  auto answer = context.getResults();
  auto work = in.files.start_tree(tree_direction::unpack, std::move(path));
  if (!work)
    return fill(answer.initError(), work.error());
  auto state = kj::refcounted<unpacking_state>(kj::mv(*work));
  answer.setArchive(kj::heap<archive_sink>(kj::addRef(*state), kj::addRef(*admitted)));
  answer.setUnpacking(kj::heap<unpacking_server>(kj::mv(state), kj::mv(admitted)));
}

kj::Promise<void> pack_tree(sandbox& in, std::string path, pack_context context) {
  // Whoever asked may have left: then the process ends with the promise.
  context.allowCancellation();
  auto work = in.files.start_tree(tree_direction::pack, std::move(path));
  if (!work) {
    fill(context.getResults().initError(), work.error());
    return kj::READY_NOW;
  }
  auto to = context.getParams().getArchive();
  auto& errand = **work;
  return pump(kj::addRef(errand), to)
    .then([work = kj::mv(*work)]() mutable { return work->finished().attach(kj::mv(work)); })
    .then(
      [context, to](result<tree_report>&& done) mutable -> kj::Promise<void> {
        if (!done) {
          fill(context.getResults().initError(), done.error());
          return kj::READY_NOW;
        }
        fill_report(context.getResults().initReport(), *done);
        return to.endRequest().send().ignoreResult();
      },
      [context](kj::Exception&& e) mutable -> kj::Promise<void> {
        fill(context.getResults().initError(),
             {errc::unavailable, std::string{"pack: whoever took the archive has left: "}
                                   + exception_text(e.getDescription().cStr())});
        return kj::READY_NOW;
      });
}

kj::Promise<void> replace_file(sandbox& in, kj::Own<admission> admitted, file_request request,
                               replace_context context) {
  auto path = request.path;
  return in.files.replace(std::move(request))
    .then(
      [context, path, admitted = kj::mv(admitted)](result<kj::Own<replacement>>&& made) mutable {
        auto answer = context.getResults();
        if (!made)
          return fill(answer.initError(), made.error());
        if (int number = (*made)->status().number)
          return fill(answer.initError(), file_error(number, "replace", path));
        answer.setFile(kj::heap<replacing_server>(kj::mv(*made), path, kj::mv(admitted)));
      });
}

} // namespace dsec::init
