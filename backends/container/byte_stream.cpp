#include "backends/container/byte_stream.hpp"

#include "backends/container/wire.hpp"

#include <algorithm>

namespace dsec {

namespace {

class receiver final : public wire::ByteSink::Server {
public:
  receiver(io_loop& loop, std::shared_ptr<output_sink> to, output_sink::stream which)
    : loop_{loop},
      to_{std::move(to)},
      which_{which} {}

  kj::Promise<void> write(WriteContext context) override {
    std::function<void()> ready;
    auto next = loop_.ticket(ready);
    to_->write(which_, wire::text(context.getParams().getBytes()), std::move(ready));
    return next;
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  io_loop& loop_;
  std::shared_ptr<output_sink> to_;
  output_sink::stream which_;
};

kj::Promise<void>
send_text(wire::ByteSink::Client to, std::shared_ptr<const std::string> text, std::size_t offset) {
  if (offset >= text->size())
    return kj::READY_NOW;
  auto piece = std::string_view{*text}.substr(offset, stream_piece_bytes);
  auto request = to.writeRequest();
  request.setBytes(wire::bytes(piece));
  return request.send().then([to, text, next = offset + piece.size()]() mutable {
    return send_text(kj::mv(to), std::move(text), next);
  });
}

kj::Promise<void>
send_rest(io_loop& loop, wire::ByteSink::Client to, std::shared_ptr<input_source> from) {
  auto arrived = std::make_shared<std::string>();
  std::function<void()> resolve;
  auto next = loop.ticket(resolve);
  from->read([arrived, resolve = std::move(resolve)](std::string bytes) {
    *arrived = std::move(bytes);
    resolve();
  });
  return next.then([&loop, to, from, arrived]() mutable -> kj::Promise<void> {
    if (arrived->empty())
      return kj::READY_NOW;
    return send_text(to, arrived, 0).then([&loop, to, from]() mutable {
      return send_rest(loop, kj::mv(to), std::move(from));
    });
  });
}

} // namespace

wire::ByteSink::Client
receive_into(io_loop& loop, std::shared_ptr<output_sink> to, output_sink::stream which) {
  return kj::heap<receiver>(loop, std::move(to), which);
}

kj::Promise<void> send_input(io_loop& loop, wire::ByteSink::Client to,
                             std::shared_ptr<const std::string> first,
                             std::shared_ptr<input_source> rest) {
  auto sent = send_text(to, std::move(first), 0);
  if (rest)
    sent = sent.then([&loop, to, rest]() mutable { return send_rest(loop, to, rest); });
  return sent.then([to]() mutable { return to.endRequest().send().ignoreResult(); });
}

} // namespace dsec
