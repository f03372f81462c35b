#include "backends/init/owner_note.hpp"

#include "backends/kill_point.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

namespace {

/// Beyond what the spawner writes there.
constexpr off_t note_at = 64;

} // namespace

result<void> note_owner(int lock, std::uint64_t epoch) {
  // One write of a fixed size: a reader sees the old text or the new one.
  char text[32];
  int size =
    std::snprintf(text, sizeof text, "owner %20llu\n", static_cast<unsigned long long>(epoch));
  kill_point(crash_role::init);
  if (::pwrite(lock, text, static_cast<std::size_t>(size), note_at) != size)
    return errno_error(errno, "note epoch " + std::to_string(epoch) + " in the sandbox's lock");
  kill_point(crash_role::init);
  return {};
}

std::uint64_t noted_owner(int run_dir, const std::string& sandbox_id) {
  int lock = ::openat(run_dir, (sandbox_id + ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0)
    return 0;
  char text[33] = {};
  auto size = ::pread(lock, text, sizeof text - 1, note_at);
  ::close(lock);
  unsigned long long epoch = 0;
  return size > 0 && std::sscanf(text, "owner %llu", &epoch) == 1 ? epoch : 0;
}

} // namespace dsec::init
