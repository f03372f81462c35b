#pragma once

#include "state/error.hpp"

#include <caf/error.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <string_view>

/// What a supervisor does about an actor that died of a bug: start it again from what is durable,
/// so often and no more.

namespace dsec {

/// An actor that has died this often within one process is left alone.
inline constexpr std::uint32_t lives_max = 8;

/// What whoever asks for such an actor is told. `who` names it.
inline error abandoned_error(std::string_view who, const caf::error& last) {
  return {
    errc::unavailable,
    fmt::format("{}: its actor died {} times, now of {}; it stays as it is until this process "
                "is started anew",
                who, lives_max, to_string(last))};
}

/// What whoever asks meanwhile is told.
inline error restarting_error(std::string_view who) {
  return {errc::unavailable, fmt::format("{}: its actor died and is being started anew", who)};
}

} // namespace dsec
