#include "backends/container/tree_transfer.hpp"

#include "backends/container/byte_stream.hpp"
#include "backends/container/wire.hpp"

#include <fmt/format.h>
#include <kj/debug.h>

#include <atomic>
#include <optional>

namespace dsec {

namespace {

using reply = result<file_reply>;

error left(std::string_view verb, const std::string& path) {
  return {errc::unavailable, fmt::format("{} {}: its caller has left", verb, path)};
}

/// The next piece; nothing if whoever was asked dropped the question.
kj::Promise<std::optional<std::string>> next_piece(io_loop& loop, input_source& from) {
  auto arrived = std::make_shared<std::optional<std::string>>();
  std::function<void()> resolve;
  auto next = loop.ticket(resolve);
  from.read([arrived, resolve = std::move(resolve)](std::string bytes) {
    *arrived = std::move(bytes);
    resolve();
  });
  return next.then([arrived] { return std::move(*arrived); });
}

kj::Promise<void>
send_piece(wire::ByteSink::Client to, std::shared_ptr<const std::string> text, std::size_t offset) {
  auto piece = std::string_view{*text}.substr(offset, stream_piece_bytes);
  auto request = to.writeRequest(capnp::MessageSize{piece.size() / 8 + 16, 0});
  request.setBytes(wire::bytes(piece));
  auto sent = request.send();
  if (offset + piece.size() >= text->size())
    return kj::mv(sent);
  return sent.then([to, text, next = offset + piece.size()]() mutable {
    return send_piece(kj::mv(to), std::move(text), next);
  });
}

/// False: the source's owner has left.
kj::Promise<bool>
send_archive(io_loop& loop, std::shared_ptr<input_source> from, wire::ByteSink::Client to) {
  auto& source = *from;
  return next_piece(loop, source)
    .then([&loop, from = std::move(from),
           to](std::optional<std::string> piece) mutable -> kj::Promise<bool> {
      if (!piece)
        return false;
      if (piece->empty())
        return to.endRequest().send().then([](auto&&) { return true; });
      return send_piece(to, std::make_shared<const std::string>(std::move(*piece)), 0)
        .then([&loop, from = std::move(from), to]() mutable {
          return send_archive(loop, std::move(from), kj::mv(to));
        });
    });
}

class archive_receiver final : public wire::ByteSink::Server {
public:
  archive_receiver(io_loop& loop, std::shared_ptr<archive_sink> to)
    : loop_{loop},
      to_{std::move(to)} {}

  kj::Promise<void> write(WriteContext context) override {
    auto taken = std::make_shared<std::atomic<bool>>(false);
    std::function<void()> resolve;
    auto next = loop_.ticket(resolve);
    to_->write(wire::text(context.getParams().getBytes()), [taken, resolve = std::move(resolve)] {
      taken->store(true);
      resolve();
    });
    return next.then([taken] {
      if (!taken->load())
        kj::throwRecoverableException(
          KJ_EXCEPTION(DISCONNECTED, "whoever took the archive has left"));
    });
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  io_loop& loop_;
  std::shared_ptr<archive_sink> to_;
};

template <class Answer>
reply report_of(Answer&& answer) {
  if (error e; wire::failed(answer.getError(), e))
    return e;
  file_reply done;
  done.tree = wire::read(answer.getReport());
  return done;
}

} // namespace

kj::Promise<reply> unpack(io_loop& loop, wire::Init::Client init, tree_write what) {
  auto request = init.unpackRequest();
  request.setPath(wire::bytes(what.path));
  return request.send().then(
    [&loop, what = std::move(what)](auto&& begun) mutable -> kj::Promise<reply> {
      if (error e; wire::failed(begun.getError(), e))
        return reply{e};
      // Whichever comes first: an archive that cannot be unpacked is not read to its end.
      auto finished = begun.getUnpacking().finishRequest().send().then(
        [](auto&& answer) -> reply { return report_of(answer); });
      auto sent = send_archive(loop, what.archive, begun.getArchive())
                    .then(
                      [path = what.path](bool all) -> kj::Promise<reply> {
                        if (!all)
                          return reply{left("unpack below", path)};
                        return kj::NEVER_DONE;
                      },
                      // It takes no more: why is in the outcome.
                      [](kj::Exception&&) -> kj::Promise<reply> { return kj::NEVER_DONE; });
      return finished.exclusiveJoin(kj::mv(sent));
    });
}

kj::Promise<reply> pack(io_loop& loop, wire::Init::Client init, tree_read what) {
  auto request = init.packRequest();
  request.setPath(wire::bytes(what.path));
  request.setArchive(kj::heap<archive_receiver>(loop, std::move(what.archive)));
  return request.send().then([](auto&& answer) -> reply { return report_of(answer); });
}

} // namespace dsec
