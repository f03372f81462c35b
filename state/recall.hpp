#pragma once

#include "state/error.hpp"
#include "state/records.hpp"

#include <string_view>

namespace dsec {

/// What a step that was recorded answers to a request of that digest: its result, `replayed`.
/// diverged if it was recorded with another request; unavailable if its outcome is not recorded.
result<exec_result> recall(const step_record& x, std::string_view request_digest);

} // namespace dsec
