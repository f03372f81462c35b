#pragma once

#include "backends/container/init_link.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

/// What the source files of init_link share.

namespace dsec {

/// How long an acknowledgement waits for a command to travel with; doubled while there is none.
inline constexpr auto release_delay_first = 50 * kj::MILLISECONDS;

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

/// The execs whose outcome is owed.
class init_link::open_execs : public std::enable_shared_from_this<open_execs> {
public:
  /// `done` behind the entry of the exec.
  completion<exec_result> add(exec_id exec, completion<exec_result> done) {
    cancelled_[exec] = false;
    return [self = shared_from_this(), exec, done = std::move(done)](result<exec_result> x) {
      const bool by_caller = self->cancelled_[exec];
      // Killed for the stop alone.
      if (self->stopping_ && !by_caller && x && x->outcome.kind == outcome_kind::cancelled)
        x->outcome = {outcome_kind::sandbox_stopped};
      self->cancelled_.erase(exec);
      done(std::move(x));
      if (self->cancelled_.empty() && self->all_answered_)
        std::exchange(self->all_answered_, nullptr)();
    };
  }

  /// By the caller.
  void cancel(exec_id exec) {
    if (auto at = cancelled_.find(exec); at != cancelled_.end() && !stopping_)
      at->second = true;
  }

  /// All that are open.
  std::vector<exec_id> stop(std::function<void()> all_answered) {
    stopping_ = true;
    all_answered_ = std::move(all_answered);
    std::vector<exec_id> ids;
    for (const auto& [exec, _] : cancelled_)
      ids.push_back(exec);
    return ids;
  }

private:
  std::map<exec_id, bool> cancelled_; ///< Whether its caller wanted that.
  bool stopping_ = false;
  std::function<void()> all_answered_;
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

template <class T>
auto init_link::owe(completion<T> done) -> std::shared_ptr<owed<T>> {
  return std::make_shared<owed<T>>(std::move(done), fate_);
}

} // namespace dsec
