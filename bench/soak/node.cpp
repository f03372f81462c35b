// The node process of a soak: killed at any time, started again, it goes on.

#include "bench/report.hpp"
#include "bench/soak/judge.hpp"
#include "bench/soak/notices.hpp"
#include "bench/soak/terms.hpp"
#include "bench/soak/verbs.hpp"
#include "bench/waits.hpp"
#include "sdk/embed/runtime.hpp"
#include "state/format.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace dsec::bench {

namespace {

constexpr unsigned users = 16;
/// One in so many verbs is about the whole job, or the end of a sandbox.
constexpr unsigned preempt_one_in = 400;
constexpr unsigned stop_one_in = 60;

struct slot {
  std::mutex used;
  std::optional<soak_box> at;
};

class node {
public:
  node(const soak_terms& terms, job& work) : terms_{terms}, work_{work}, slots_(terms.sandboxes) {}

  /// Takes up what lives, and judges all there is.
  void take_up() {
    const auto known = soak_notices::read(terms_.notices);
    auto all = work_.list(true).get();
    if (!all)
      return to_.wrong("list: " + all.error().message);
    std::atomic<std::size_t> next{0};
    std::mutex placing;
    std::size_t taken = 0;
    in_threads([&](unsigned) {
      for (std::size_t i; (i = next++) < all->size();) {
        const auto& info = (*all)[i];
        if (info.ended_ms != 0 || info.state == sandbox_state::failed) {
          if (auto bad = wrong_end(info, known))
            to_.wrong(*bad);
          continue;
        }
        auto box = find(info.id);
        if (!box)
          continue;
        if (auto step = judge(*box, known, to_)) {
          std::scoped_lock lock{placing};
          if (taken < slots_.size())
            slots_[taken++].at.emplace(soak_box{*box, *step});
          else
            to_.wrong(fmt::format("{}: more sandboxes live than were asked for", info.id));
        }
      }
    });
  }

  void work() {
    const auto until = within(std::chrono::seconds{terms_.seconds});
    std::jthread teller{[&](const std::stop_token& over) {
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock{mutex};
      while (!ended.wait_for(lock, over, std::chrono::milliseconds{200},
                             [&] { return over.stop_requested(); }))
        to_.tell_verbs();
    }};
    in_threads([&](unsigned number) {
      std::mt19937_64 random{terms_.seed + number};
      while (std::chrono::steady_clock::now() < until)
        turn(random);
    });
    teller.request_stop();
    teller.join();
    to_.tell_verbs();
  }

  void know(runtime& of) {
    runtime_ = &of;
  }

private:
  template <class Body>
  void in_threads(Body body) {
    std::vector<std::jthread> all;
    for (unsigned i = 0; i < users; ++i)
      all.emplace_back([&body, i] { body(i); });
  }

  std::optional<sandbox> find(const sandbox_id& id) {
    auto box = runtime_->find(id).get();
    if (box)
      return *std::move(box);
    to_.wrong(fmt::format("find {}: {}", id, box.error().message));
    return std::nullopt;
  }

  void turn(std::mt19937_64& random) {
    if (random() % preempt_one_in == 0)
      return preempt();
    auto& x = slots_[random() % slots_.size()];
    std::unique_lock lock{x.used, std::try_to_lock};
    if (!lock)
      return;
    if (!x.at)
      return fill(x);
    to_.did();
    if (random() % stop_one_in == 0)
      return stop(x);
    if (auto bad = use(*x.at, random, to_))
      look_after(x, *bad);
  }

  void preempt() {
    to_.did();
    auto report = work_.preempt().get();
    if (!report)
      to_.wrong("preempt: " + report.error().message);
    if (auto back = work_.resume().get(); !back)
      to_.wrong("resume the job: " + back.error().message);
  }

  void fill(slot& x) {
    to_.did();
    environment from;
    from.layers = {layer_digest{terms_.base}};
    from.limits.memory_bytes = 64ull << 20;
    auto made = work_.create({from, {}}).get();
    if (made)
      x.at.emplace(soak_box{*std::move(made), 1});
    else if (!soak_notices::read(terms_.notices).spawner)
      to_.wrong(fmt::format("create: {} ({})", made.error().message, made.error().code));
  }

  void stop(slot& x) {
    auto stopped = x.at->box.stop().get();
    if (!stopped && !soak_notices::read(terms_.notices).spawner)
      to_.wrong(fmt::format("stop {}: {}", x.at->box.id(), stopped.error().message));
    x.at.reset();
  }

  /// A verb was not answered as it must be: only the end of its sandbox excuses that, and only one
  /// that the driver brought about.
  void look_after(slot& x, const std::string& bad) {
    const auto id = x.at->box.id();
    const auto known = soak_notices::read(terms_.notices);
    if (!known.killed.contains(id.str()))
      return to_.wrong(fmt::format("{}: {}", id, bad));
    x.at.reset();
  }

  const soak_terms& terms_;
  job& work_;
  runtime* runtime_ = nullptr;
  told to_;
  std::vector<slot> slots_;
};

} // namespace

int run_soak_node(const soak_terms& terms) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  runtime_options options;
  options.data_dir = terms.data_dir;
  options.run_dir = terms.run_dir;
  auto opened = runtime::open(terms.state_dir, options);
  told to;
  if (!opened) {
    to.wrong("open the runtime: " + opened.error().message);
    return 1;
  }
  auto work = (*opened)->open_job("soak").get();
  if (!work) {
    to.wrong("open the job: " + work.error().message);
    return 1;
  }
  if (terms.seconds == 0) {
    auto closed = work->close().get();
    if (!closed)
      to.wrong("close the job: " + closed.error().message);
    return closed ? 0 : 1;
  }
  node at{terms, *work};
  at.know(**opened);
  at.take_up();
  at.work();
  return 0;
}

} // namespace dsec::bench
