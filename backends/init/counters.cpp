#include "backends/init/counters.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace dsec::init {

namespace {

kj::AutoCloseFd open_in(int folder, const char* name, int flags = O_RDONLY) {
  return kj::AutoCloseFd{folder < 0 ? -1 : ::openat(folder, name, flags | O_CLOEXEC)};
}

std::string content(int fd) {
  char buffer[4096];
  ssize_t n = fd < 0 ? 0 : ::pread(fd, buffer, sizeof buffer, 0);
  return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string{};
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool write_text(int fd, const std::string& text) {
  return ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

} // namespace

std::uint64_t counted_in(int fd, std::string_view key) {
  const auto text = content(fd);
  std::string_view rest = text;
  while (!rest.empty()) {
    auto line = rest.substr(0, rest.find('\n'));
    if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == ' ')
      return number_in(line.substr(key.size() + 1));
    rest.remove_prefix(line.size() == rest.size() ? line.size() : line.size() + 1);
  }
  return 0;
}

counters::counters(const launch& given)
  : unified_{given.memory_v1 < 0},
    memory_limit_{given.memory_bytes} {
  if (unified_) {
    const int d = given.payload_v2;
    usage_ = {d, "memory.current"};
    peak_ = charged_peak_ = {d, "memory.peak"};
    swap_ = {d, "memory.swap.current"};
    give_back_ = {d, "memory.reclaim"};
    swap_limit_ = {d, "memory.swap.max"};
  } else {
    const int d = given.memory_v1;
    usage_ = {d, "memory.usage_in_bytes"};
    peak_ = {d, "memory.max_usage_in_bytes"};
    charged_peak_ = {d, "memory.memsw.max_usage_in_bytes"};
    swap_ = {d, "memory.memsw.usage_in_bytes"};
    give_back_ = {d, "memory.force_empty"};
  }
  const int pids = given.pids_v1 < 0 ? given.payload_v2 : given.pids_v1;
  processes_ = open_in(pids, "pids.current");
  cpu_ = {given.payload_v2, "cpu.stat"};
}

std::uint64_t counters::memory_bytes() const {
  return number_in(content(open_in(usage_.folder, usage_.name)));
}

std::uint64_t counters::memory_peak_bytes() const {
  return number_in(content(open_in(peak_.folder, peak_.name)));
}

std::uint64_t counters::swap_bytes() const {
  const auto swap = number_in(content(open_in(swap_.folder, swap_.name)));
  if (unified_)
    return swap;
  // v1 counts memory and swap together, at another moment than memory alone.
  const auto memory = memory_bytes();
  return swap > memory ? swap - memory : 0;
}

std::uint64_t counters::charged_peak_bytes() const {
  const auto charged = number_in(content(open_in(charged_peak_.folder, charged_peak_.name)));
  return std::max(charged, memory_peak_bytes());
}

std::uint32_t counters::processes() const {
  return static_cast<std::uint32_t>(number_in(content(processes_)));
}

std::uint64_t counters::cpu_us() const {
  return counted_in(open_in(cpu_.folder, cpu_.name), "usage_usec");
}

std::uint64_t counters::bytes_to_write() const {
  const auto stat = open_in(give_back_.folder, "memory.stat");
  return counted_in(stat, "file_dirty") + counted_in(stat, "file_writeback");
}

result<counters::reclaimed> counters::reclaim() const {
  constexpr std::uint64_t rest_bytes =
    1 << 20; // Kernel objects and pages in flight: not worth a pass.
  constexpr int passes_max = 4;
  constexpr int waits_max = 100; // Of 10 ms each.
  const auto give_back = open_in(give_back_.folder, give_back_.name, O_WRONLY);
  const auto swap_limit = open_in(swap_limit_.folder, swap_limit_.name, O_WRONLY);
  if (give_back.get() < 0)
    return error{errc::unavailable, "reclaim memory: the kernel has no file for it"};
  reclaimed done;
  done.before_bytes = done.after_bytes = memory_bytes();
  // Without memory of its own in swap, the agent's limit is what it was promised.
  if (swap_limit.get() >= 0)
    write_text(swap_limit, memory_limit_ ? std::to_string(memory_limit_) : "max");
  int failed = 0;
  int waits = 0;
  for (int pass = 0; pass < passes_max && done.after_bytes > rest_bytes;) {
    const auto before = done.after_bytes;
    const bool wrote = write_text(give_back, unified_ ? std::to_string(before) : "1");
    failed = wrote ? 0 : errno;
    done.after_bytes = memory_bytes();
    if (done.after_bytes + before / 16 < before) {
      ++pass;
      continue;
    }
    // Pages of files that are still to be written: the attempt has woken the writers.
    if (waits == waits_max || !unified_ || bytes_to_write() < before / 16)
      break;
    ++waits;
    ::usleep(10'000);
  }
  if (swap_limit.get() >= 0)
    write_text(swap_limit, "0");
  if (done.after_bytes > rest_bytes && done.after_bytes > done.before_bytes / 10 * 9) {
    struct sysinfo machine {};

    if (::sysinfo(&machine) == 0 && machine.totalswap == 0)
      return error{errc::exhausted, "reclaim " + std::to_string(done.before_bytes)
                                      + " bytes of memory: the machine has no swap"};
    if (failed != 0 && failed != EAGAIN)
      return errno_error(failed, "reclaim memory");
    return error{errc::exhausted, "reclaim memory: " + std::to_string(done.after_bytes) + " of "
                                    + std::to_string(done.before_bytes)
                                    + " bytes stay, the swap is full"};
  }
  return done;
}

} // namespace dsec::init
