#include "bench/new_namespace.hpp"

#include <sys/wait.h>

#include <csignal>
#include <sched.h>

namespace dsec::bench {

fd make_namespace(const new_namespace& wanted) {
  int ready[2];
  checked(::pipe2(ready, O_CLOEXEC), "pipe");
  const fd read_end{ready[0]};
  fd write_end{ready[1]};
  const pid_t child = checked(::fork(), "fork");
  if (child == 0) {
    if (::unshare(wanted.flag) == 0 && (!wanted.inside || wanted.inside())
        && ::write(write_end.get(), "x", 1) == 1)
      ::pause();
    ::_exit(1);
  }
  write_end.reset();
  char byte;
  fd made;
  if (::read(read_end.get(), &byte, 1) == 1) {
    if (wanted.outside)
      wanted.outside(child);
    const auto path = "/proc/" + std::to_string(child) + "/ns/" + wanted.kind;
    made = fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  checked(made.get(), std::string{"make a namespace: "} + wanted.kind);
  return made;
}

} // namespace dsec::bench
