#pragma once

#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#error "the reaper's system calls are written for x86-64"
#endif

/// System calls without a libc: the raw result, negative errno included.
namespace dsec::init::reaper {

inline long
call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long answer;
  __asm__ volatile("syscall"
                   : "=a"(answer)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return answer;
}

template <class T>
long address(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

[[noreturn]] inline void leave(int code) {
  for (;;)
    call(SYS_exit_group, code);
}

} // namespace dsec::init::reaper
