// What the kernel's files say, with what an agent can put into them: the name of a process in the
// kernel's log must not make it speak of another process.

#include "backends/init/counters.hpp"
#include "backends/init/disk_probe.hpp"
#include "backends/init/oom_log.hpp"
#include "tests/fuzz/input.hpp"

#include <sys/mman.h>

#include <unistd.h>

using namespace dsec;
using namespace dsec::init;

namespace {

/// A name as the kernel prints it: at most 15 bytes; /dev/kmsg escapes what is no text.
std::string shown_name(std::string_view name) {
  std::string shown;
  for (unsigned char c :
       name.substr(0, std::min<std::size_t>({name.size(), 15, name.find('\0')}))) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, c < 0x20 || c >= 0x7f || c == '\\' ? "\\x%02x" : "%c",
                  c);
    shown += escaped;
  }
  return shown;
}

void check_victim(fuzz::input& in) {
  static const char* const names[] = {"a",  ") total-vm:", ": Killed proces", " UID:0 pgtables",
                                      "(x", "))",          ";Out of memory"};
  const auto pid = 1 + in.number<std::uint16_t>();
  const auto uid = in.number<std::uint32_t>();
  const bool machine = in.flag();
  const auto name = shown_name(in.flag() ? std::string_view{in.one_of(names)} : in.take_all());
  const auto record =
    "3,1127,5150318,-;" + std::string{machine ? "Out of memory" : "Memory cgroup out of memory"}
    + ": Killed process " + std::to_string(pid) + " (" + name
    + ") total-vm:9kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:" + std::to_string(uid)
    + " pgtables:52kB oom_score_adj:0\n";
  const auto read = read_oom_record(record);
  fuzz::claim(read.has_value(), "a victim is read", record);
  fuzz::claim(read->pid == pid && read->uid == uid && read->machine == machine,
              "a victim is the one that was killed", record);
  fuzz::claim(name.find(") total-vm:") != name.npos || read->name == name, "by its name", record);
}

void check_counter(std::string_view text) {
  static const int file = ::memfd_create("counter", MFD_CLOEXEC);
  fuzz::claim(::ftruncate(file, 0) == 0
                && ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
              "write the file");
  (void)counted_in(file, "oom_kill");
  fuzz::claim(counted_in(file, "") == 0 || text.find(' ') != text.npos, "a counter has a key");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  switch (in.below(4)) {
  case 0:
    check_victim(in);
    break;
  case 1:
    check_counter(in.take_all());
    break;
  case 2:
    (void)disk_probe::is_said_in(in.take_all());
    break;
  default:
    (void)read_oom_record(in.take_all());
  }
  return 0;
}
