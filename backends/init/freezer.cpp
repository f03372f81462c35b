#include "backends/init/freezer.hpp"

#include "backends/kill_point.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr auto patience = 10 * kj::SECONDS;
/// The kernel tells of the change; this only bounds what a missed notice costs.
constexpr auto look_again = 5 * kj::MILLISECONDS;

kj::AutoCloseFd open_file(int folder, const char* name, int flags) {
  return kj::AutoCloseFd{::openat(folder, name, flags | O_CLOEXEC)};
}

} // namespace

freezer::freezer(kj::UnixEventPort& port, kj::Timer& timer, int payload, const counters& counts,
                 std::function<void()> frozen, std::function<void()> thawed)
  : port_{port},
    timer_{timer},
    counts_{counts},
    frozen_{std::move(frozen)},
    thawed_{std::move(thawed)},
    state_{open_file(payload, "cgroup.freeze", O_WRONLY)},
    events_{open_file(payload, "cgroup.events", O_RDONLY)} {}

template <class T>
kj::Promise<T> freezer::in_turn(std::function<kj::Promise<T>()> work) {
  auto pair = kj::newPromiseAndFulfiller<T>();
  ++queued_;
  turn_ = turn_.then([work = std::move(work)] { return work(); })
            .then([this, tell = kj::mv(pair.fulfiller)](T&& done) mutable {
              --queued_;
              tell->fulfill(kj::mv(done));
            })
            .eagerlyEvaluate([](kj::Exception&&) {});
  return kj::mv(pair.promise);
}

kj::Promise<void> freezer::idle() {
  if (!busy())
    return kj::READY_NOW;
  return in_turn<bool>([] { return kj::Promise<bool>{true}; }).ignoreResult();
}

kj::Promise<result<std::uint64_t>> freezer::pause() {
  return in_turn<result<std::uint64_t>>([this] { return freeze(); });
}

kj::Promise<result<counters::reclaimed>> freezer::reclaim() {
  return in_turn<result<counters::reclaimed>>([this] { return give_back(); });
}

kj::Promise<result<void>> freezer::resume() {
  return in_turn<result<void>>([this] { return thaw(); });
}

result<void> freezer::write_state(const char* value) {
  kill_point(crash_role::init);
  if (::pwrite(state_, value, 1, 0) != 1)
    return errno_error(errno, "write cgroup.freeze");
  kill_point(crash_role::init);
  return {};
}

kj::Promise<bool> freezer::wait_for(const char* line, kj::TimePoint until) {
  char buffer[256];
  const ssize_t n = ::pread(events_, buffer, sizeof buffer, 0);
  const bool reached =
    n > 0 && std::string(buffer, static_cast<std::size_t>(n)).find(line) != std::string::npos;
  if (reached || timer_.now() >= until) {
    observer_ = nullptr;
    return reached;
  }
  if (!observer_)
    observer_ =
      kj::heap<kj::UnixEventPort::FdObserver>(port_, events_.get(),
                                              kj::UnixEventPort::FdObserver::OBSERVE_URGENT);
  return observer_->whenUrgentDataAvailable()
    .exclusiveJoin(timer_.afterDelay(look_again))
    .then([this, line, until] { return wait_for(line, until); });
}

kj::Promise<result<std::uint64_t>> freezer::freeze() {
  if (phase_ != phase_type::RUNNING)
    return result<std::uint64_t>{std::uint64_t{0}};
  const auto began = std::chrono::steady_clock::now();
  frozen_();
  if (auto wrote = write_state("1"); !wrote) {
    thawed_();
    return result<std::uint64_t>{wrote.error()};
  }
  return wait_for("frozen 1", timer_.now() + patience)
    .then([this, began](bool done) -> result<std::uint64_t> {
      const auto took = std::chrono::steady_clock::now() - began;
      if (!done) {
        (void)write_state("0");
        thawed_();
        return error{errc::unavailable,
                     "pause: a process did not freeze within 10 s (blocked in the kernel)"};
      }
      phase_ = phase_type::PAUSED;
      return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    });
}

kj::Promise<result<counters::reclaimed>> freezer::give_back() {
  if (phase_ == phase_type::RUNNING)
    return result<counters::reclaimed>{
      error{errc::invalid_state, "reclaim: the sandbox runs, pause it first"}};
  auto pair = kj::newPromiseAndCrossThreadFulfiller<result<counters::reclaimed>>();
  kill_point(crash_role::init);
  // Shared, because a thread's function object may not hold what KJ's destructors may throw from.
  auto tell = std::make_shared<decltype(pair.fulfiller)>(kj::mv(pair.fulfiller));
  std::thread{[this, tell] {
    (*tell)->fulfill(counts_.reclaim());
  }}.detach();
  return pair.promise.then([this](result<counters::reclaimed>&& done) {
    kill_point(crash_role::init);
    if (done)
      phase_ = phase_type::RECLAIMED;
    return kj::mv(done);
  });
}

kj::Promise<result<void>> freezer::thaw() {
  if (phase_ == phase_type::RUNNING)
    return result<void>{};
  if (auto wrote = write_state("0"); !wrote)
    return wrote;
  return wait_for("frozen 0", timer_.now() + patience).then([this](bool done) -> result<void> {
    if (!done)
      return error{errc::unavailable, "resume: the payload is still frozen after 10 s"};
    phase_ = phase_type::RUNNING;
    thawed_();
    return {};
  });
}

} // namespace dsec::init
