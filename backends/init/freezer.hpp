#pragma once

#include "backends/init/counters.hpp"
#include "schemas/init.capnp.h"
#include "state/error.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/io.h>

#include <functional>

namespace dsec::init {

/// Freezes, reclaims and thaws the payload. One of them at a time: what is asked meanwhile is
/// queued.
class freezer {
public:
  using phase_type = wire::Hello::Phase;

  /// `frozen` is called before the processes stop, `thawed` after they run again (also when
  /// freezing failed).
  freezer(kj::UnixEventPort& port, kj::Timer& timer, int payload, const counters& counts,
          std::function<void()> frozen, std::function<void()> thawed);

  phase_type phase() const {
    return phase_;
  }

  /// Answers once all that was asked before is done.
  kj::Promise<void> idle();

  bool busy() const {
    return queued_ > 0;
  }

  /// Microseconds until all were frozen; 0 if they were already. unavailable, with everything
  /// thawed again, when a process does not freeze within 10 s.
  kj::Promise<result<std::uint64_t>> pause();

  /// invalid_state unless paused; else as counters::reclaim.
  kj::Promise<result<counters::reclaimed>> reclaim();

  kj::Promise<result<void>> resume();

private:
  template <class T>
  kj::Promise<T> in_turn(std::function<kj::Promise<T>()> work);

  kj::Promise<result<std::uint64_t>> freeze();
  kj::Promise<result<counters::reclaimed>> give_back();
  kj::Promise<result<void>> thaw();
  result<void> write_state(const char* value);
  /// False if the events file has not said `line` by `until`.
  kj::Promise<bool> wait_for(const char* line, kj::TimePoint until);

  kj::UnixEventPort& port_;
  kj::Timer& timer_;
  const counters& counts_;
  std::function<void()> frozen_, thawed_;
  kj::AutoCloseFd state_, events_;
  /// Only while something is waited for: the file tells of every command that comes and goes.
  kj::Own<kj::UnixEventPort::FdObserver> observer_;
  phase_type phase_ = phase_type::RUNNING;
  unsigned queued_ = 0;
  kj::Promise<void> turn_ = kj::READY_NOW;
};

} // namespace dsec::init
