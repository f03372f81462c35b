#pragma once

#include "state/error.hpp"

#include <caf/error.hpp>

#include <string_view>

/// The one bridge between our errors and those that travel in CAF's answers.

namespace dsec {

/// Category "dsec"; carries code and message.
caf::error to_caf(const error& x);

/// `asked` names who did not answer, for errors that CAF itself made; these are unavailable.
error from_caf(const caf::error& x, std::string_view asked);

} // namespace dsec
