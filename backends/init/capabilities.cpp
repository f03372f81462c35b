#include "backends/init/capabilities.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <unistd.h>

namespace dsec::init {

int keep_capabilities(std::uint64_t kept) {
  // Ends at the first number that the kernel does not know.
  for (int n = 0; n < 64; ++n) {
    const int held = ::prctl(PR_CAPBSET_READ, n, 0, 0, 0);
    if (held < 0)
      break;
    if (held == 1 && !(kept >> n & 1) && ::prctl(PR_CAPBSET_DROP, n, 0, 0, 0) != 0)
      return errno;
  }
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
    return errno;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0)
    return errno;
  for (int i = 0; i < 2; ++i) {
    const auto word = static_cast<std::uint32_t>(kept >> (32 * i));
    sets[i].permitted &= word;
    sets[i].effective = sets[i].permitted;
    sets[i].inheritable &= word;
  }
  if (::syscall(SYS_capset, &header, sets) != 0)
    return errno;
  return 0;
}

} // namespace dsec::init
