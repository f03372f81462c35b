// The part of the link that runs commands: their start, their streams, their end, and what
// dsec-init may forget of them.

#include "backends/container/byte_stream.hpp"
#include "backends/container/init_link_parts.hpp"
#include "backends/container/wire.hpp"

#include <algorithm>

namespace dsec {

namespace {

/// Spool of a streamed exec, however little of it the caller wants to keep.
constexpr std::uint64_t streamed_spool_bytes = 1 << 20;

/// How long the commands of a sandbox that is being stopped may take to say how they ended.
constexpr auto stop_patience = 1 * kj::SECONDS;

/// The longest that an acknowledgement waits for a command to travel with.
constexpr auto release_delay_last = 3200 * kj::MILLISECONDS;
/// A larger answer is released at once: dsec-init holds its copy until then.
constexpr std::uint64_t held_words_max = (64 << 10) / sizeof(capnp::word);

} // namespace

void init_link::exec(std::shared_ptr<const exec_call> call, completion<exec_result> done) {
  auto debt = owe(open_->add(open_ends::of::exec, call->id, std::move(done)));
  if (call->sink || call->spec.stdin_bytes)
    exec_streamed(std::move(call), std::move(debt));
  else
    exec_collected(*call, std::move(debt));
}

void init_link::exec_collected(const exec_call& call, std::shared_ptr<owed<exec_result>> debt) {
  auto request = connection_->init.runRequest();
  request.setId(call.id);
  wire::write(call.spec, request.initSpec());
  const auto durable = take_durable();
  auto ids = request.initForget(durable.size());
  for (unsigned i = 0; i < ids.size(); ++i)
    ids.set(i, durable[i]);
  auto answered = request.send();
  read_.clear();
  connection_->tasks.add(answered.then(
    [this, debt](auto&& answer) {
      error e;
      const bool failed = wire::failed(answer.getError(), e);
      auto outcome =
        failed ? result<exec_result>{e} : result<exec_result>{wire::read(answer.getResult())};
      if (answer.totalSize().wordCount <= held_words_max)
        read_.push_back(kj::mv(answer));
      release_later();
      debt->pay(std::move(outcome));
    },
    [debt, id = id_](kj::Exception&& e) {
      debt->pay(wire::broken(fmt::format("exec in {}", id), e));
    }));
}

void init_link::exec_streamed(std::shared_ptr<const exec_call> call,
                              std::shared_ptr<owed<exec_result>> debt) {
  auto request = connection_->init.execRequest();
  request.setId(call->id);
  request.setAttended(call->sink != nullptr);
  auto spec = request.initSpec();
  wire::write(call->spec, spec);
  // What is written before the sink is attached comes out of the spool.
  spec.setSpoolBytes(std::max<std::uint64_t>(call->spec.spool_bytes, streamed_spool_bytes));
  auto started = request.send();
  auto exec = started.getExec();
  // `wait` follows `exec` without waiting for its answer: one round trip for a short command.
  auto ended = exec.waitRequest().send();

  kj::Promise<void> streamed = kj::READY_NOW;
  if (call->sink) {
    auto attach = exec.attachRequest();
    attach.setStdout(receive_into(loop_, call->sink, output_sink::stream::out));
    attach.setStderr(receive_into(loop_, call->sink, output_sink::stream::err));
    streamed = attach.send().ignoreResult().catch_([](kj::Exception&&) {});
  }
  // Once it has ended, or was refused, nobody takes its input: the source is left alone.
  auto input = kj::newPromiseAndFulfiller<void>();
  if (call->spec.stdin_bytes) {
    std::shared_ptr<const std::string> first{call, &*call->spec.stdin_bytes};
    auto sink = exec.stdinRequest().send().getSink();
    connection_->tasks.add(
      send_input(loop_, kj::mv(sink), first, call->sink ? call->sink->input() : nullptr)
        .exclusiveJoin(kj::mv(input.promise)));
  }

  connection_->tasks.add(
    started
      .then([this, debt, call, ended = kj::mv(ended), streamed = kj::mv(streamed),
             input_over = kj::mv(input.fulfiller)](auto&& answer) mutable -> kj::Promise<void> {
        if (error e; wire::failed(answer.getError(), e)) {
          debt->pay(e);
          return kj::READY_NOW;
        }
        return ended.then([this, debt, call, streamed = kj::mv(streamed),
                           input_over = kj::mv(input_over)](auto&& end) mutable {
          input_over->fulfill();
          release_later();
          auto x = wire::read(end.getResult());
          x.out.resize(std::min<std::size_t>(x.out.size(), call->spec.spool_bytes));
          x.err.resize(std::min<std::size_t>(x.err.size(), call->spec.spool_bytes));
          return streamed.then([debt, x = std::move(x)]() mutable { debt->pay(std::move(x)); });
        });
      })
      .catch_([debt, id = id_](kj::Exception&& e) {
        debt->pay(wire::broken(fmt::format("exec in {}", id), e));
      }));
}

void init_link::cancel(exec_id exec) {
  open_->cancel(exec);
  auto request = connection_->init.cancelRequest();
  request.setId(exec);
  connection_->tasks.add(request.send().ignoreResult());
}

void init_link::signal(exec_id exec, int number) {
  auto request = connection_->init.signalRequest();
  request.setId(exec);
  request.setNumber(number);
  connection_->tasks.add(request.send().ignoreResult());
}

void init_link::discard(const std::vector<exec_id>& execs) {
  if (execs.empty())
    return;
  auto ended = connection_->init.forgetRequest();
  auto ids = ended.initIds(execs.size());
  for (unsigned i = 0; i < ids.size(); ++i)
    ids.set(i, execs[i]);
  connection_->tasks.add(ended.send().ignoreResult());
  for (auto exec : execs) {
    // Joins it if it still runs; without arguments it starts nothing if it does not.
    auto running = connection_->init.runRequest();
    running.setId(exec);
    connection_->tasks.add(running.send().then([this, exec](auto&& answer) {
      if (error e; wire::failed(answer.getError(), e))
        return;
      durable_->add(id_, exec);
      release_later();
    }));
  }
}

std::vector<exec_id> init_link::take_durable() {
  auto ids = durable_->take(id_);
  told_ -= std::min(told_, ids.size());
  return ids;
}

void init_link::release_later() {
  ++told_;
  release_delay_ = release_delay_first;
  if (!releasing_)
    release();
}

void init_link::release() {
  releasing_ = true;
  connection_->tasks.add(loop_.timer().afterDelay(release_delay_).then([this] {
    releasing_ = false;
    read_.clear();
    if (const auto durable = take_durable(); !durable.empty()) {
      auto request = connection_->init.forgetRequest();
      auto ids = request.initIds(durable.size());
      for (unsigned i = 0; i < ids.size(); ++i)
        ids.set(i, durable[i]);
      connection_->tasks.add(request.send().ignoreResult());
    }
    release_delay_ = 2 * release_delay_;
    if (told_ > 0 && release_delay_ <= release_delay_last)
      release();
  }));
}

void init_link::stop_commands(std::function<void()> done) {
  auto answered = std::make_shared<std::function<void()>>(std::move(done));
  // From a fresh turn: `done` may end what is under way here.
  auto once = [&loop = loop_, answered] {
    if (auto tell = std::exchange(*answered, nullptr))
      loop.post(std::move(tell));
  };
  const auto under_way = open_->stop(once);
  if (under_way.nothing)
    return once();
  for (auto exec : under_way.execs)
    cancel(exec);
  for (auto process : under_way.processes)
    connection_->tasks.add(processes_.ask(connection_->init, process_kill{process}).ignoreResult());
  connection_->tasks.add(loop_.timer().afterDelay(stop_patience).then(once));
}

} // namespace dsec
