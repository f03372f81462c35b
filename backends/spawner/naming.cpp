#include "backends/spawner/naming.hpp"

#include "backends/kill_point.hpp"
#include "backends/spawner/lock_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace dsec::spawner {

namespace {

void at_effect() {
  kill_point(crash_role::spawner);
}

} // namespace

result<void>
name_sandbox(const machine& on, std::uint32_t slot, int host_name, const create_order& order) {
  auto from = slot_name(slot);
  // The lock first: a spawner that starts meanwhile finds the slot through it.
  at_effect();
  if (int number = rename_lock(on.run_dir.get(), from, order.id); number != 0)
    return errno_error(number, "name the lock of " + order.id);
  at_effect();
  int directory = on.run_dir.get();
  // Left there, it would one day be read as this sandbox's end.
  if (::unlinkat(directory, (order.id + ".end").c_str(), 0) < 0 && errno != ENOENT)
    return errno_error(errno, "remove the tombstone of an earlier " + order.id);
  if (::renameat(directory, (from + ".sock").c_str(), directory, (order.id + ".sock").c_str()) < 0)
    return errno_error(errno, "name the socket of " + order.id);
  at_effect();
  bool named = ::setns(host_name, CLONE_NEWUTS) == 0
               && ::sethostname(order.hostname.data(), order.hostname.size()) == 0;
  int number = errno;
  bool back = ::setns(on.host_name.get(), CLONE_NEWUTS) == 0;
  if (!named || !back)
    return errno_error(named ? errno : number, "set the host name of " + order.id);
  at_effect();
  return {};
}

} // namespace dsec::spawner
