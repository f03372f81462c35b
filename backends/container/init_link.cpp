#include "backends/container/dial.hpp"
#include "backends/container/file_transfer.hpp"
#include "backends/container/init_link_parts.hpp"
#include "backends/container/wire.hpp"

namespace dsec {

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
    open_{std::make_shared<open_ends>()},
    processes_{loop},
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
      found_.running.clear();
      for (auto exec : answer.getHello().getRunning())
        found_.running.push_back(exec);
      return {};
    },
    [id = id_](kj::Exception&& e) -> result<void> {
      return wire::broken(fmt::format("enter dsec-init of {}", id), e);
    });
}

const found_sandbox& init_link::found() const noexcept {
  return found_;
}

void init_link::on_lost(std::function<void(std::string)> lost) {
  connection_->tasks.add(connection_->client.onDisconnect().then([this, lost = std::move(lost)] {
    broken_ = true;
    // Whatever is asked from now on is told what the connection ended of.
    return connection_->gate.enterRequest()
      .send()
      .then([](auto&&) { return std::string{}; },
            [](kj::Exception&& e) { return wire::broken("talk to it", e).message; })
      .then(
        [this, lost](std::string why) { loop_.post([lost, why = std::move(why)] { lost(why); }); });
  }));
}

void init_link::close(ending how) {
  fate_->how = how;
  read_.clear();
  processes_.close();
  connection_ = nullptr;
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

void init_link::file(file_request request, completion<file_reply> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(transfer(loop_, connection_->init, std::move(request))
                           .then([debt](result<file_reply> x) { debt->pay(std::move(x)); },
                                 [debt, id = id_](kj::Exception&& e) {
                                   debt->pay(wire::broken(fmt::format("reach files of {}", id), e));
                                 }));
}

void init_link::process(process_request request, completion<process_reply> done) {
  auto broken = [id = id_](const kj::Exception& e) {
    return wire::broken(fmt::format("reach processes of {}", id), e);
  };
  if (auto* kill = std::get_if<process_kill>(&request))
    open_->cancel(kill->id);
  if (auto* attach = std::get_if<process_attach>(&request))
    done = open_->add_attachment(attach->id, std::move(done));
  if (auto* wait = std::get_if<process_wait>(&request)) {
    // The end of a sandbox that is stopped is an outcome to whoever waits for one.
    auto debt = owe(
      open_->add(open_ends::of::process, wait->id, [done = std::move(done)](result<exec_result> x) {
        done(x ? result<process_reply>{process_reply{{}, *std::move(x)}} : x.error());
      }));
    connection_->tasks.add(processes_.ask(connection_->init, std::move(request))
                             .then(
                               [debt](result<process_reply> x) {
                                 debt->pay(x ? result<exec_result>{std::move(x->outcome)}
                                             : result<exec_result>{x.error()});
                               },
                               [debt, broken](kj::Exception&& e) { debt->pay(broken(e)); }));
    return;
  }
  auto debt = owe(std::move(done));
  connection_->tasks.add(processes_.ask(connection_->init, std::move(request))
                           .then([debt](result<process_reply> x) { debt->pay(std::move(x)); },
                                 [debt, broken](kj::Exception&& e) { debt->pay(broken(e)); }));
}

void init_link::stats(completion<sandbox_stats> done) {
  auto debt = owe(std::move(done));
  connection_->tasks.add(connection_->init.statsRequest().send().then(
    [debt](auto&& answer) {
      auto s = answer.getStats();
      using std::chrono::milliseconds;
      debt->pay(sandbox_stats{
        s.getMemoryBytes(), s.getMemoryPeakBytes(), s.getSwapBytes(), s.getProcesses(),
        std::chrono::microseconds{s.getCpuUs()}, s.getOomKills(), s.getMemoryLimitBytes(),
        s.getProcessesLimit(), s.getCpuLimitMilli(), s.getDiskBytes(), s.getDiskLimitBytes(),
        s.getReadBytes(), s.getWrittenBytes(), milliseconds{s.getTimeToLiveLeftMs()},
        milliseconds{s.getRolloutBudgetLeftMs()}});
    },
    [debt, id = id_](kj::Exception&& e) {
      debt->pay(wire::broken(fmt::format("read the statistics of {}", id), e));
    }));
}

void init_link::set_clocks(const sandbox_clocks& clocks, completion<void> done) {
  auto debt = owe(std::move(done));
  auto request = connection_->init.clocksRequest();
  request.setTimeToLiveMs(clocks.time_to_live.count());
  request.setRolloutBudgetMs(clocks.rollout_budget.count());
  connection_->tasks.add(
    request.send().then([debt](auto&&) { debt->pay({}); },
                        [debt, id = id_](kj::Exception&& e) {
                          debt->pay(wire::broken(fmt::format("set the clocks of {}", id), e));
                        }));
}

void init_link::renew(const lease_terms& lease) {
  auto request = connection_->init.renewRequest();
  request.setPauseInMs(lease.pause_after.count());
  request.setStopInMs(lease.stop_after.count());
  connection_->tasks.add(request.send().ignoreResult());
}

} // namespace dsec
