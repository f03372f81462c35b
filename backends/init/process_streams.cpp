// The part of a process that moves bytes: from its scroll-back to its readers, from its writers to
// its input.

#include "backends/init/process.hpp"

#include <algorithm>
#include <utility>

namespace dsec::init {

namespace {

constexpr std::size_t piece_bytes = 64 << 10;

/// One reader of one stream. It takes what it can; what is dropped meanwhile, it is told of.
class reader : public kj::Refcounted {
public:
  reader(kj::Own<process> whose, scroll_back& from, wire::LossySink::Client to,
         std::uint64_t position)
    : whose_{kj::mv(whose)},
      from_{from},
      to_{kj::mv(to)},
      position_{position} {}

  /// `kept`: nothing that is older is sent.
  kj::Promise<void> run(std::uint64_t kept) {
    if (kept > position_) {
      auto request = to_.skippedRequest();
      request.setBytes(kept - position_);
      position_ = kept;
      return request.send().then([this] { return run(from_.oldest()); });
    }
    const auto piece = from_.from(position_, piece_bytes);
    if (piece.size() > 0) {
      auto request = to_.writeRequest(capnp::MessageSize{piece.size() / 8 + 16, 0});
      request.setBytes(piece);
      position_ += piece.size();
      return request.send().then([this] { return run(from_.oldest()); });
    }
    if (from_.ended())
      return to_.endRequest().send().ignoreResult();
    return from_.more().then([this] { return run(from_.oldest()); });
  }

private:
  kj::Own<process> whose_;
  scroll_back& from_;
  wire::LossySink::Client to_;
  std::uint64_t position_;
};

} // namespace

kj::Promise<void>
process::attach(wire::AttachFrom from, wire::LossySink::Client out, wire::LossySink::Client err) {
  auto read = [&](scroll_back& stream, wire::LossySink::Client to) {
    const bool live = from == wire::AttachFrom::TAIL;
    auto one =
      kj::refcounted<reader>(kj::addRef(*this), stream, kj::mv(to), live ? stream.written() : 0);
    auto all = one->run(live ? 0 : stream.oldest_kept());
    // A reader that broke is one that left.
    return all.attach(kj::mv(one)).catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
  };
  auto first = read(out_, kj::mv(out));
  auto second = read(err_, kj::mv(err));
  ++readers_;
  auto gone = kj::defer([self = kj::addRef(*this)]() mutable { --self->readers_; });
  return first.then([second = kj::mv(second)]() mutable { return kj::mv(second); })
    .attach(kj::mv(gone));
}

result<void> process::may_write() const {
  if (over_ || run_->ended())
    return impossible("write to", "it has ended");
  if (!input_open_)
    return impossible("write to", "its input is closed");
  return {};
}

kj::Promise<result<void>> process::input(kj::Array<const kj::byte> bytes, bool end) {
  auto pair = kj::newPromiseAndFulfiller<result<void>>();
  inputs_.push_back({kj::mv(bytes), end, kj::mv(pair.fulfiller)});
  if (!feeding_) {
    feeding_ = true;
    feeder_ = feed().eagerlyEvaluate([](kj::Exception&&) {});
  }
  return kj::mv(pair.promise);
}

kj::Promise<void> process::feed() {
  while (!inputs_.empty()) {
    auto next = kj::mv(inputs_.front());
    inputs_.pop_front();
    auto may = may_write();
    // Until it is asked for there is nothing to write to.
    kj::Maybe<input_pipe&> pipe = nullptr;
    if (may)
      pipe = run_->input();
    KJ_IF_MAYBE (to, pipe) {
      if (next.bytes.size() > 0)
        line_begun_ = next.bytes.back() != '\n' && next.bytes.back() != '\r';
      return to->write(kj::mv(next.bytes))
        .then([this, end = next.end, done = kj::mv(next.done)]() mutable {
          auto ok = may_write();
          if (ok && !input_is_read()) {
            input_open_ = false;
            ok = impossible("write to", "nobody reads its input any more");
          }
          if (ok && end)
            close_input();
          done->fulfill(kj::mv(ok));
          return feed();
        });
    }
    next.done->fulfill(may ? result<void>{impossible("write to", "it has not started")} : may);
  }
  feeding_ = false;
  return kj::READY_NOW;
}

bool process::input_is_read() {
  KJ_IF_MAYBE (to, run_->input()) {
    return to->open();
  }
  return false;
}

void process::close_input() {
  input_open_ = false;
  KJ_IF_MAYBE (to, run_->input()) {
    if (terminal_.get() == nullptr)
      return to->close();
    const auto key = terminal_->end_of_input(line_begun_);
    to->write(kj::heapArray<kj::byte>(reinterpret_cast<const kj::byte*>(key.data()), key.size()))
      .detach([](kj::Exception&&) {});
  }
}

} // namespace dsec::init
