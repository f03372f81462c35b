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

/// The outcomes that are owed, of execs and of processes, and the attachments.
class init_link::open_ends : public std::enable_shared_from_this<open_ends> {
public:
  enum class of { exec, process, attachment };

  /// Those that have not ended.
  struct under_way {
    std::vector<exec_id> execs;
    std::vector<exec_id> processes;
    bool nothing = true; ///< Not even an attachment.
  };

  /// `done` behind the entry of what has an outcome.
  completion<exec_result> add(of what, exec_id id, completion<exec_result> done) {
    const auto number = enlist(what, id);
    return [self = shared_from_this(), number, done = std::move(done)](result<exec_result> x) {
      const bool by_caller = self->open_.at(number).cancelled;
      // Killed for the stop alone.
      if (self->stopping_ && !by_caller && x && x->outcome.kind == outcome_kind::cancelled)
        x->outcome = {outcome_kind::sandbox_stopped};
      self->strike(number, [&] { done(std::move(x)); });
    };
  }

  completion<process_reply> add_attachment(exec_id id, completion<process_reply> done) {
    const auto number = enlist(of::attachment, id);
    return [self = shared_from_this(), number, done = std::move(done)](result<process_reply> x) {
      self->strike(number, [&] { done(std::move(x)); });
    };
  }

  /// By the caller.
  void cancel(exec_id id) {
    if (stopping_)
      return;
    for (auto& [_, x] : open_)
      x.cancelled = x.cancelled || x.id == id;
  }

  /// All that are open.
  under_way stop(std::function<void()> all_answered) {
    stopping_ = true;
    all_answered_ = std::move(all_answered);
    under_way all;
    for (const auto& [_, x] : open_) {
      all.nothing = false;
      if (x.what != of::attachment)
        (x.what == of::exec ? all.execs : all.processes).push_back(x.id);
    }
    return all;
  }

private:
  struct entry {
    of what;
    exec_id id;
    bool cancelled; ///< Its caller wanted that.
  };

  std::uint64_t enlist(of what, exec_id id) {
    open_.emplace(++last_, entry{what, id, false});
    return last_;
  }

  template <class Tell>
  void strike(std::uint64_t number, Tell tell) {
    open_.erase(number);
    tell();
    if (open_.empty() && all_answered_)
      std::exchange(all_answered_, nullptr)();
  }

  std::map<std::uint64_t, entry> open_;
  std::uint64_t last_ = 0;
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
