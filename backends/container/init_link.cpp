#include "backends/container/init_link.hpp"

#include "backends/container/byte_stream.hpp"
#include "backends/container/dial.hpp"
#include "backends/container/file_transfer.hpp"
#include "backends/container/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec {

struct init_link::fate {
  sandbox_id id;
  ending how = ending::broken;
};

/// An answer that somebody waits for. Destroyed unpaid, it pays what the link's fate says.
template <class T>
class init_link::owed {
public:
  owed(completion<T> done, std::shared_ptr<fate> end)
    : done_{std::move(done)},
      fate_{std::move(end)} {}

  owed(const owed&) = delete;
  owed& operator=(const owed&) = delete;

  ~owed() {
    if (!done_ || fate_->how == ending::silent)
      return;
    if (fate_->how == ending::broken)
      pay(error{errc::unavailable, fmt::format("dsec-init of {} is gone", fate_->id)});
    else
      pay(stopped());
  }

  void pay(result<T> x) {
    auto done = std::move(done_);
    done_ = nullptr;
    if (fate_->how != ending::silent)
      done(std::move(x));
  }

private:
  result<T> stopped() const {
    if constexpr (std::is_same_v<T, exec_result>) {
      exec_result x;
      x.outcome.kind = outcome_kind::sandbox_stopped;
      return x;
    } else {
      return error{errc::invalid_state, fmt::format("{} was stopped", fate_->id)};
    }
  }

  completion<T> done_;
  std::shared_ptr<fate> fate_;
};

struct init_link::connection : kj::TaskSet::ErrorHandler {
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient client;
  /// Asked for once: `bootstrap` throws when the other side has gone, calls fail in their answer.
  wire::InitGate::Client gate;
  wire::Init::Client init = nullptr;
  kj::TaskSet tasks;

  explicit connection(kj::Own<kj::AsyncIoStream> x)
    : stream{kj::mv(x)},
      client{*stream},
      gate{client.bootstrap().castAs<wire::InitGate>()},
      tasks{*this} {}

  void taskFailed(kj::Exception&&) override {}
};

namespace {

/// Spool of a streamed exec, however little of it the caller wants to keep.
constexpr std::uint64_t streamed_spool_bytes = 1 << 20;

/// How long an acknowledgement waits for a command to travel with; doubled while there is none, up
/// to the longest.
constexpr auto release_delay_first = 50 * kj::MILLISECONDS;
constexpr auto release_delay_last = 3200 * kj::MILLISECONDS;
/// A larger answer is released at once: dsec-init holds its copy until then.
constexpr std::uint64_t held_words_max = (64 << 10) / sizeof(capnp::word);

} // namespace

kj::Promise<result<std::shared_ptr<init_link>>>
init_link::open(io_loop& loop, sandbox_id id, std::filesystem::path socket, std::uint64_t epoch,
                std::shared_ptr<acknowledgements> durable) {
  using link = result<std::shared_ptr<init_link>>;
  return dial(loop, std::move(socket))
    .then([&loop, id, epoch, durable](auto stream) -> kj::Promise<link> {
      if (!stream)
        return link{stream.error()};
      auto made = std::make_shared<init_link>(loop, id, kj::mv(*stream), durable);
      return made->enter(epoch).then([made](result<void> entered) -> link {
        if (!entered)
          return entered.error();
        return made;
      });
    });
}

init_link::init_link(io_loop& loop, sandbox_id id, kj::Own<kj::AsyncIoStream> stream,
                     std::shared_ptr<acknowledgements> durable)
  : loop_{loop},
    id_{std::move(id)},
    fate_{std::make_shared<fate>()},
    connection_{kj::heap<connection>(kj::mv(stream))},
    durable_{std::move(durable)},
    release_delay_{release_delay_first} {
  fate_->id = id_;
}

init_link::~init_link() {
  close(fate_->how);
}

kj::Promise<result<void>> init_link::enter(std::uint64_t epoch) {
  auto request = connection_->gate.enterRequest();
  request.setEpoch(epoch);
  return request.send().then(
    [this](auto&& answer) -> result<void> {
      if (error e; wire::failed(answer.getError(), e))
        return e;
      if (!connection_)
        return error{errc::unavailable,
                     fmt::format("enter dsec-init of {}: the link was closed", id_)};
      connection_->init = answer.getInit();
      switch (answer.getHello().getPhase()) {
      case wire::Hello::Phase::RUNNING:
        found_.phase = found_phase::running;
        break;
      case wire::Hello::Phase::PAUSED:
        found_.phase = found_phase::paused;
        break;
      case wire::Hello::Phase::RECLAIMED:
        found_.phase = found_phase::reclaimed;
        break;
      }
      found_.execs.clear();
      for (auto exec : answer.getHello().getExecs())
        found_.execs.push_back(exec);
      return {};
    },
    [id = id_](kj::Exception&& e) -> result<void> {
      return wire::broken(fmt::format("enter dsec-init of {}", id), e);
    });
}

const found_sandbox& init_link::found() const noexcept {
  return found_;
}

void init_link::on_lost(std::function<void()> lost) {
  connection_->tasks.add(
    connection_->client.onDisconnect().then([this, lost = std::move(lost)] { loop_.post(lost); }));
}

void init_link::close(ending how) {
  fate_->how = how;
  read_.clear();
  connection_ = nullptr;
}

template <class T>
auto init_link::owe(completion<T> done) -> std::shared_ptr<owed<T>> {
  return std::make_shared<owed<T>>(std::move(done), fate_);
}

void init_link::pause(completion<void> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(connection_->init.pauseRequest().send().then(
    [debt](auto&& answer) {
      error e;
      debt->pay(wire::failed(answer.getError(), e) ? result<void>{e} : result<void>{});
    },
    [debt, id = id_](kj::Exception&& e) {
      debt->pay(wire::broken(fmt::format("pause {}", id), e));
    }));
}

void init_link::reclaim(completion<reclaim_report> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(connection_->init.reclaimRequest().send().then(
    [debt](auto&& answer) {
      if (error e; wire::failed(answer.getError(), e))
        return debt->pay(e);
      debt->pay(reclaim_report{answer.getBeforeBytes(), answer.getAfterBytes()});
    },
    [debt, id = id_](kj::Exception&& e) {
      debt->pay(wire::broken(fmt::format("reclaim {}", id), e));
    }));
}

void init_link::resume(completion<void> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(connection_->init.resumeRequest().send().then(
    [debt](auto&& answer) {
      error e;
      debt->pay(wire::failed(answer.getError(), e) ? result<void>{e} : result<void>{});
    },
    [debt, id = id_](kj::Exception&& e) {
      debt->pay(wire::broken(fmt::format("resume {}", id), e));
    }));
}

void init_link::exec(std::shared_ptr<const exec_call> call, completion<exec_result> done) {
  auto debt = owe(std::move(done));
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
  if (call->spec.stdin_bytes) {
    std::shared_ptr<const std::string> first{call, &*call->spec.stdin_bytes};
    auto sink = exec.stdinRequest().send().getSink();
    connection_->tasks.add(
      send_input(loop_, kj::mv(sink), first, call->sink ? call->sink->input() : nullptr));
  }

  connection_->tasks.add(
    started
      .then([this, debt, call, ended = kj::mv(ended),
             streamed = kj::mv(streamed)](auto&& answer) mutable -> kj::Promise<void> {
        if (error e; wire::failed(answer.getError(), e)) {
          debt->pay(e);
          return kj::READY_NOW;
        }
        return ended.then([this, debt, call, streamed = kj::mv(streamed)](auto&& end) mutable {
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

void init_link::file(file_request request, completion<file_reply> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(transfer(connection_->init, std::move(request))
                           .then([debt](result<file_reply> x) { debt->pay(std::move(x)); },
                                 [debt, id = id_](kj::Exception&& e) {
                                   debt->pay(wire::broken(fmt::format("reach files of {}", id), e));
                                 }));
}

void init_link::stats(completion<sandbox_stats> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(connection_->init.statsRequest().send().then(
    [debt](auto&& answer) {
      auto s = answer.getStats();
      debt->pay(sandbox_stats{s.getMemoryBytes(), s.getMemoryPeakBytes(), s.getSwapBytes(),
                              s.getProcesses(), std::chrono::microseconds{s.getCpuUs()},
                              s.getOomKills()});
    },
    [debt, id = id_](kj::Exception&& e) {
      debt->pay(wire::broken(fmt::format("read the statistics of {}", id), e));
    }));
}

void init_link::renew(const lease_terms& lease) {
  auto request = connection_->init.renewRequest();
  request.setPauseInMs(lease.pause_after.count());
  request.setStopInMs(lease.stop_after.count());
  connection_->tasks.add(request.send().ignoreResult());
}

} // namespace dsec
