#pragma once

#include "state/error.hpp"

#include <cstdint>
#include <string>

namespace dsec {

/// A quantity with a bound, and who has it.
struct budget {
  std::string limit; ///< What is bounded: "sandboxes", "memory_bytes".
  std::string scope; ///< Whose it is: "node n5f02a1bc", "job train-7".
  std::uint64_t used = 0;
  std::uint64_t most = 0; ///< 0: no bound.
};

/// Nothing if `asked` more fits into `of`; otherwise exhausted, with limit, scope, used, bound and
/// asked.
result<void> admit(const budget& of, std::uint64_t asked);

/// What `admit` answers when it does not.
error refuse(const budget& of, std::uint64_t asked);

} // namespace dsec
