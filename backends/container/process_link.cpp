#include "backends/container/process_link.hpp"

#include "backends/container/byte_stream.hpp"
#include "backends/container/wire.hpp"

#include <algorithm>
#include <string_view>

namespace dsec {

namespace {

using reply = result<process_reply>;

/// What standard input begins with goes with the start up to this size; the rest follows.
constexpr std::size_t first_bytes_max = 4 << 20;

class lossy_receiver final : public wire::LossySink::Server {
public:
  lossy_receiver(io_loop& loop, std::shared_ptr<output_sink> to, output_sink::stream which)
    : loop_{loop},
      to_{std::move(to)},
      which_{which} {}

  kj::Promise<void> write(WriteContext context) override {
    std::function<void()> ready;
    auto next = loop_.ticket(ready);
    to_->write(which_, wire::text(context.getParams().getBytes()), std::move(ready));
    return next;
  }

  kj::Promise<void> skipped(SkippedContext context) override {
    to_->skipped(which_, context.getParams().getBytes());
    return kj::READY_NOW;
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  io_loop& loop_;
  std::shared_ptr<output_sink> to_;
  output_sink::stream which_;
};

/// Finds the process and goes on with it.
template <class Use>
kj::Promise<reply> with_process(wire::Init::Client init, exec_id id, Use use) {
  auto request = init.processRequest();
  request.setId(id);
  return request.send().then([use = kj::mv(use)](auto&& found) mutable -> kj::Promise<reply> {
    if (error e; wire::failed(found.getError(), e))
      return reply{e};
    return use(found.getProcess());
  });
}

/// Of a call that answers with nothing but an error.
template <class Promise>
kj::Promise<reply> plain(Promise sent) {
  return sent.then([](auto&& answer) -> reply {
    if (error e; wire::failed(answer.getError(), e))
      return e;
    return process_reply{};
  });
}

kj::Promise<reply> write_pieces(wire::Process::Client to, std::shared_ptr<const std::string> bytes,
                                std::size_t from, bool end) {
  const auto piece = std::string_view{*bytes}.substr(from, stream_piece_bytes);
  const auto next = from + piece.size();
  auto request = to.inputRequest();
  request.setBytes(wire::bytes(piece));
  request.setEnd(end && next == bytes->size());
  return request.send().then([to, bytes, next, end](auto&& answer) mutable -> kj::Promise<reply> {
    if (error e; wire::failed(answer.getError(), e))
      return reply{e};
    if (next >= bytes->size())
      return reply{process_reply{}};
    return write_pieces(kj::mv(to), bytes, next, end);
  });
}

} // namespace

kj::Promise<reply> process_link::ask(wire::Init::Client init, process_request request) {
  return std::visit([&](auto& x) { return act(kj::mv(init), std::move(x)); }, request);
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_start x) {
  auto request = init.spawnRequest();
  request.setId(x.id);
  wire::write(x.spec.command, request.initSpec());
  auto terms = request.initTerms();
  terms.setName(x.spec.name.c_str());
  if (x.spec.terminal) {
    terms.setTerminal(true);
    terms.setRows(x.spec.terminal->rows);
    terms.setColumns(x.spec.terminal->columns);
  }
  auto bytes = std::make_shared<const std::string>(
    std::move(x.spec.command.stdin_bytes).value_or(std::string{}));
  const auto first = std::min(bytes->size(), first_bytes_max);
  const bool open = x.spec.open_input || x.spec.terminal.has_value();
  request.setStdin(wire::bytes(std::string_view{*bytes}.substr(0, first)));
  request.setKeepInput(open || first < bytes->size());
  return request.send().then(
    [this, init, bytes, first, open, id = x.id](auto&& answer) mutable -> kj::Promise<reply> {
      if (error e; wire::failed(answer.getError(), e))
        return reply{e};
      if (first < bytes->size())
        (void)write_in_turn(init, id, bytes, first, !open); // Goes on by itself.
      return init.processesRequest().send().then([id](auto&& all) -> reply {
        process_reply started;
        started.processes.push_back({.id = id});
        for (auto each : all.getProcesses())
          if (each.getId() == id)
            started.processes.front() = wire::read(each);
        return started;
      });
    });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_list) {
  return init.processesRequest().send().then([](auto&& all) -> reply {
    process_reply found;
    for (auto each : all.getProcesses())
      found.processes.push_back(wire::read(each));
    return found;
  });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_wait x) {
  return with_process(kj::mv(init), x.id, [](wire::Process::Client of) {
    return of.waitRequest().send().then([](auto&& answer) -> reply {
      return process_reply{{}, wire::read(answer.getResult())};
    });
  });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_attach x) {
  auto detached = kj::newPromiseAndFulfiller<void>();
  attached_[x.ticket] = kj::mv(detached.fulfiller);
  auto over = [this, ticket = x.ticket] {
    attached_.erase(ticket);
  };
  return with_process(
           kj::mv(init), x.id,
           [&loop = loop_, from = x.from, sink = std::move(x.sink)](wire::Process::Client of) {
             auto request = of.attachRequest();
             request.setFrom(static_cast<wire::AttachFrom>(from));
             request.setStdout(kj::heap<lossy_receiver>(loop, sink, output_sink::stream::out));
             request.setStderr(kj::heap<lossy_receiver>(loop, sink, output_sink::stream::err));
             return request.send().then([](auto&&) { return reply{process_reply{}}; });
           })
    .exclusiveJoin(detached.promise.then([] { return reply{process_reply{}}; }))
    .then(
      [over](reply&& x) -> kj::Promise<reply> {
        over();
        return kj::mv(x);
      },
      [over](kj::Exception&& e) -> kj::Promise<reply> {
        over();
        return kj::mv(e);
      });
}

kj::Promise<reply> process_link::act(wire::Init::Client, process_detach x) {
  if (auto known = attached_.find(x.ticket); known != attached_.end())
    known->second->fulfill();
  return reply{process_reply{}};
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_input x) {
  return write_in_turn(kj::mv(init), x.id, std::make_shared<const std::string>(std::move(x.bytes)),
                       0, x.end);
}

kj::Promise<reply> process_link::write_in_turn(wire::Init::Client init, exec_id id,
                                               shared_bytes bytes, std::size_t from, bool end) {
  kj::Promise<void> before = kj::READY_NOW;
  if (auto known = turns_.find(id); known != turns_.end())
    before = known->second.over.addBranch();
  const auto number = ++last_turn_;
  auto mine =
    before
      .then([init = kj::mv(init), id, bytes, from, end]() mutable {
        return with_process(kj::mv(init), id, [bytes, from, end](wire::Process::Client to) {
          return write_pieces(kj::mv(to), bytes, from, end);
        });
      })
      .fork();
  auto over = mine.addBranch().ignoreResult().catch_([](kj::Exception&&) {}).fork();
  turns_.insert_or_assign(id, turn{number, kj::mv(over)});
  return mine.addBranch().then([this, id, number](reply&& x) {
    if (auto last = turns_.find(id); last != turns_.end() && last->second.number == number)
      turns_.erase(last);
    return kj::mv(x);
  });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_resize x) {
  return with_process(kj::mv(init), x.id, [size = x.size](wire::Process::Client of) {
    auto request = of.resizeRequest();
    request.setRows(size.rows);
    request.setColumns(size.columns);
    return plain(request.send());
  });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_signal x) {
  return with_process(kj::mv(init), x.id, [x](wire::Process::Client of) {
    auto request = of.signalRequest();
    request.setNumber(x.number);
    request.setTree(x.tree);
    return plain(request.send());
  });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_kill x) {
  return with_process(kj::mv(init), x.id, [](wire::Process::Client of) {
    return of.killRequest().send().then([](auto&&) { return reply{process_reply{}}; });
  });
}

kj::Promise<reply> process_link::act(wire::Init::Client init, process_remove x) {
  return with_process(kj::mv(init), x.id,
                      [](wire::Process::Client of) { return plain(of.removeRequest().send()); });
}

} // namespace dsec
