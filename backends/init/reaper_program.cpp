#include "backends/init/launch.hpp"

__asm__(".section .rodata\n"
        ".balign 16\n"
        "dsec_reaper_begin:\n"
        ".incbin \"" DSEC_REAPER_FILE "\"\n"
        "dsec_reaper_end:\n"
        ".previous\n");

extern "C" {
// Hidden: the archive may end in a program that is linked as position-independent code.
extern const unsigned char dsec_reaper_begin[] __attribute__((visibility("hidden")));
extern const unsigned char dsec_reaper_end[] __attribute__((visibility("hidden")));
}

namespace dsec::init {

program reaper_program() {
  return {dsec_reaper_begin, static_cast<std::size_t>(dsec_reaper_end - dsec_reaper_begin)};
}

} // namespace dsec::init
