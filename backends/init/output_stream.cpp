#include "backends/init/output_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace dsec::init {

namespace {

constexpr std::size_t chunk_bytes = 64 << 10;
/// The most that a process without privileges can make a pipe hold.
constexpr std::size_t pipe_bytes_max = 1 << 20;
/// After so many reads without a reader, other work gets its turn.
constexpr int reads_in_a_row = 16;

// One buffer for every stream: what is read is copied on before control returns to the event loop.
char buffer[chunk_bytes];

} // namespace

output_stream::output_stream(kj::UnixEventPort& port, kj::AutoCloseFd pipe,
                             std::uint64_t spool_bytes)
  : pipe_{kj::mv(pipe)},
    port_{port},
    spool_bytes_{spool_bytes},
    end_{nullptr},
    task_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_end_ = kj::mv(pair.fulfiller);
  end_ = pair.promise.fork();
}

void output_stream::begin() {
  if (begun_)
    return;
  begun_ = true;
  task_ = step().eagerlyEvaluate([](kj::Exception&&) {});
}

bool output_stream::pull() {
  for (int reads = 0; reads < reads_in_a_row && !ended_ && sink_ == nullptr && !blocked(); ++reads)
    if (fetch() == 0)
      break;
  if (!ended_ || sink_ != nullptr)
    return false;
  // Without a reader it waits for bytes, or for a reader.
  if (begun_ && wake_)
    wake_->fulfill();
  return true;
}

void output_stream::let_go() {
  if (!held_)
    return;
  held_ = false;
  if (wake_)
    wake_->fulfill();
}

void output_stream::seal() {
  if (sealed_)
    return;
  std::size_t room = pipe_bytes_max;
  while (!ended_ && room > 0) {
    const auto n = ::read(pipe_, buffer, std::min(room, sizeof buffer));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      ended_ = n == 0 || errno != EAGAIN;
      break;
    }
    const auto size = static_cast<std::size_t>(n);
    room -= size;
    const auto before = kept_.size();
    keep(buffer, size);
    const auto spooled = kept_.size() - before;
    if (sink_ != nullptr)
      last_.append(buffer + spooled, size - spooled);
  }
  sealed_ = true;
  held_ = false;
  if (wake_ && !sending_)
    wake_->fulfill();
}

void output_stream::keep(const char* bytes, std::size_t size) {
  total_ += size;
  if (kept_.size() < spool_bytes_)
    kept_.append(bytes, std::min<std::uint64_t>(size, spool_bytes_ - kept_.size()));
}

std::size_t output_stream::fetch() {
  const auto room = held_ ? spool_bytes_ - kept_.size() : sizeof buffer;
  ssize_t n;
  do
    n = ::read(pipe_, buffer, std::min<std::uint64_t>(room, sizeof buffer));
  while (n < 0 && errno == EINTR);
  if (n <= 0) {
    ended_ = n == 0 || errno != EAGAIN;
    return 0;
  }
  const auto size = static_cast<std::size_t>(n);
  if (!sealed_)
    keep(buffer, size);
  return size;
}

kj::Promise<void> output_stream::until_woken() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  wake_ = kj::mv(pair.fulfiller);
  return kj::mv(pair.promise);
}

kj::Promise<void> output_stream::step() {
  sending_ = false;
  for (int reads = 0; reads < reads_in_a_row; ++reads) {
    if (sink_ != nullptr && sent_ < kept_.size()) {
      const auto n = std::min(chunk_bytes, kept_.size() - sent_);
      auto sending = send(kept_.data() + sent_, n);
      sent_ += n;
      return sending.then([this] { return step(); });
    }
    if (sink_ != nullptr && !last_.empty()) {
      const auto last = std::exchange(last_, {});
      return send(last.data(), last.size()).then([this] { return step(); });
    }
    if (ended_) {
      observer_ = nullptr;
      pipe_ = nullptr;
      return finish();
    }
    KJ_IF_MAYBE (sink, sink_) {
      if (sealed_)
        return end_reader(*sink).then([this] { return step(); });
    }
    if (blocked())
      return until_woken().then([this] { return step(); });
    const auto size = fetch();
    if (size > 0 && sink_ != nullptr) {
      sent_ = kept_.size();
      return send(buffer, size).then([this] { return step(); });
    }
    if (size > 0 || ended_)
      continue;
    if (!observer_)
      observer_ =
        kj::heap<kj::UnixEventPort::FdObserver>(port_, pipe_.get(),
                                                kj::UnixEventPort::FdObserver::OBSERVE_READ);
    return observer_->whenBecomesReadable().exclusiveJoin(until_woken()).then([this] {
      return step();
    });
  }
  return kj::evalLater([this] { return step(); });
}

kj::Promise<void> output_stream::send(const char* bytes, std::size_t size) {
  KJ_IF_MAYBE (sink, sink_) {
    auto request = sink->writeRequest(capnp::MessageSize{size / 8 + 16, 0});
    request.setBytes({reinterpret_cast<const kj::byte*>(bytes), size});
    sending_ = true;
    // A reader that broke is one that left; the command goes on.
    return request.send()
      .catch_([this](kj::Exception&&) { detach(); })
      .exclusiveJoin(until_woken());
  }
  return kj::READY_NOW;
}

kj::Promise<void> output_stream::end_reader(wire::ByteSink::Client& sink) {
  sending_ = true;
  return sink.endRequest()
    .send()
    .ignoreResult()
    .catch_([](kj::Exception&&) {})
    .then([this] { detach(); })
    .exclusiveJoin(until_woken());
}

kj::Promise<void> output_stream::finish() {
  if (tell_end_->isWaiting())
    tell_end_->fulfill();
  KJ_IF_MAYBE (sink, sink_) {
    return end_reader(*sink).then([this] { return step(); });
  }
  return until_woken().then([this] { return step(); });
}

void output_stream::detach() {
  sink_ = nullptr;
  if (tell_detached_) {
    tell_detached_->fulfill();
    tell_detached_ = nullptr;
  }
}

kj::Promise<void> output_stream::attach(wire::ByteSink::Client sink) {
  detach();
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_detached_ = kj::mv(pair.fulfiller);
  sink_ = kj::mv(sink);
  sent_ = 0;
  held_ = false;
  if (wake_)
    wake_->fulfill();
  begin();
  return kj::mv(pair.promise);
}

} // namespace dsec::init
