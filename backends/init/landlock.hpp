#pragma once

#include <cstdint>
#include <initializer_list>

namespace dsec::init {

/// Version of Landlock in the running kernel; 0 when it has none.
int landlock_version();

/// File system rights below one directory (or of one file).
struct landlock_rule {
  int fd = -1; ///< -1: the rule is left out.
  std::uint64_t rights = 0;
};

/// Every file system right that `version` knows.
std::uint64_t landlock_all_rights(int version);

/// Puts the calling thread into a new domain in which the `handled` rights exist only where a rule
/// grants them; rights that the kernel does not know are dropped from both. `no_network` also
/// refuses TCP bind and connect where the kernel can. Returns 0 or an errno value; 0 without effect
/// on a kernel without Landlock.
int landlock_restrict(std::uint64_t handled, std::initializer_list<landlock_rule> rules,
                      bool no_network);

} // namespace dsec::init
