#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace dsec {

/// Why an operation did not happen. A code exists only because some caller branches on it; the rest
/// is message text: what was attempted, on what, and the cause, in that order.
enum class errc : std::uint8_t {
  invalid_argument = 1, ///< The request itself is wrong; the message names field, value and limit.
  not_found,            ///< No such sandbox, job, layer, file or step.
  invalid_state,        ///< A good request at the wrong point of a lifecycle.
  exhausted,            ///< Admission or a limit refused it. Retry later or elsewhere.
  unavailable,          ///< Spawner, node or kernel facility is out of reach. Retry.
  corrupt,              ///< A digest, checksum or format version disagrees.
  preempted,            ///< The job is held until `resume(job)` or a new lease.
  state_in_use,         ///< Another process owns the state directory; the message holds its pid.
  diverged,             ///< A recorded step or key was sent again with another request.
  no_program,           ///< The sandbox has no such program; nothing ran.
  not_executable,       ///< The program is there and cannot be executed; nothing ran.
  expired,              ///< The sandbox's time to live or rollout budget has ended it, perhaps
                        ///< before it ran; the message says which.
};

inline constexpr auto errc_last = errc::expired;

std::string_view to_string(errc code);

struct error {
  errc code = errc::unavailable;
  std::string message;
};

/// A value or the error that stands in its place. Like std::expected of C++23.
template <class T>
class [[nodiscard]] result {
public:
  result(T value) : held_{std::in_place_index<0>, std::move(value)} {}

  result(dsec::error e) : held_{std::in_place_index<1>, std::move(e)} {}

  explicit operator bool() const noexcept {
    return held_.index() == 0;
  }

  T& operator*() & {
    return std::get<0>(held_);
  }

  const T& operator*() const& {
    return std::get<0>(held_);
  }

  T&& operator*() && {
    return std::get<0>(std::move(held_));
  }

  T* operator->() {
    return &std::get<0>(held_);
  }

  const T* operator->() const {
    return &std::get<0>(held_);
  }

  const dsec::error& error() const {
    return std::get<1>(held_);
  }

private:
  std::variant<T, dsec::error> held_;
};

template <>
class [[nodiscard]] result<void> {
public:
  result() = default;

  result(dsec::error e) : error_{std::move(e)}, ok_{false} {}

  explicit operator bool() const noexcept {
    return ok_;
  }

  const dsec::error& error() const {
    return error_;
  }

private:
  dsec::error error_;
  bool ok_ = true;
};

/// "`what`: `strerror(number)`" as `unavailable`, or as the code that the errno value stands for
/// (ENOENT not_found, EDQUOT and ENOSPC exhausted, EINVAL invalid_argument).
error errno_error(int number, std::string what);

} // namespace dsec
