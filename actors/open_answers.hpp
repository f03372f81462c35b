#pragma once

#include "actors/errors.hpp"

#include <caf/delegated.hpp>
#include <caf/response_promise.hpp>
#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace dsec {

/// The answers that an actor owes. It lies in the actor's state and goes with it, whatever the
/// actor dies of, and then answers each with unavailable: CAF never answers for a promise that is
/// dropped.
class open_answers {
public:
  /// One of them. Copies are the same answer; the first delivery counts. Not to be used once the
  /// actor has ended.
  template <class T>
  class answer {
  public:
    void deliver(T x) const {
      pay(std::move(x));
    }

    void deliver(caf::error x) const {
      pay(std::move(x));
    }

    /// What a message handler returns whose answer comes later.
    operator caf::result<T>() const {
      return caf::delegated<T>{};
    }

  private:
    friend class open_answers;

    answer(open_answers& owner, std::uint64_t number) : owner_{&owner}, number_{number} {}

    template <class Content>
    void pay(Content x) const {
      if (auto at = owner_->open_.extract(number_); !at.empty())
        at.mapped().deliver(std::move(x));
    }

    open_answers* owner_;
    std::uint64_t number_;
  };

  open_answers() = default;
  open_answers(const open_answers&) = delete;
  open_answers& operator=(const open_answers&) = delete;

  ~open_answers() {
    for (auto& [number, promise] : std::exchange(open_, {}))
      promise.deliver(to_caf({errc::unavailable, debtor + ": its actor is gone; ask again"}));
  }

  /// To the message that `self` handles.
  template <class T, class Self>
  answer<T> owe(Self self) {
    open_.emplace(++last_, self->template make_response_promise<T>());
    return {*this, last_};
  }

  std::string debtor; ///< Who it is that owes, as errors name it.

private:
  std::map<std::uint64_t, caf::response_promise> open_;
  std::uint64_t last_ = 0;
};

} // namespace dsec
