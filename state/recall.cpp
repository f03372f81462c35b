#include "state/recall.hpp"

#include <fmt/format.h>

namespace dsec {

result<exec_result> recall(const step_record& x, std::string_view request_digest) {
  if (x.request_digest != request_digest)
    return error{errc::diverged, fmt::format("sandbox {}, step {}: recorded with another request",
                                             x.sandbox.str(), x.step)};
  if (!x.result)
    return error{errc::unavailable, fmt::format("sandbox {}, step {}: its outcome is not recorded",
                                                x.sandbox.str(), x.step)};
  auto again = *x.result;
  again.replayed = true;
  return again;
}

} // namespace dsec
