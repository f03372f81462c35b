#include "backends/init/oom_log.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr std::uint32_t ids_of_a_sandbox = 65536;

/// Children that were killed are named as well and never asked for.
constexpr std::size_t victims_max = 256;

/// Longer than any record that the kernel hands out.
constexpr std::size_t record_bytes_max = 8192;

/// The kernel numbers its first namespaces, and only those, the same on every machine.
constexpr ino_t first_pid_namespace = 0xEFFFFFFC;
constexpr ino_t first_user_namespace = 0xEFFFFFFD;

bool is_namespace(const char* path, ino_t number) {
  struct stat s {};

  return ::stat(path, &s) == 0 && s.st_ino == number;
}

/// Takes a number from the front; nothing if there is none.
template <class T>
std::optional<T> take_number(std::string_view& text) {
  T value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{})
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view wanted) {
  if (text.substr(0, wanted.size()) != wanted)
    return false;
  text.remove_prefix(wanted.size());
  return true;
}

} // namespace

std::optional<oom_victim> read_oom_record(std::string_view record) {
  // "priority,sequence,time,flags[,more];text": the low three bits of the priority are the level,
  // the rest is who wrote it, and 0 is the kernel.
  constexpr unsigned levels = 8;
  const auto priority = take_number<unsigned>(record);
  const auto head = record.find(';');
  if (!priority || *priority >= levels || head == std::string_view::npos)
    return std::nullopt;
  record.remove_prefix(head + 1);
  oom_victim found;
  if (!take(record, "Memory cgroup out of memory")) {
    if (!take(record, "Out of memory"))
      return std::nullopt;
    found.machine = true;
  }
  // "(oom_kill_allocating_task)" may stand between.
  const auto killed = record.substr(0, record.find('\n')).find(": Killed process ");
  if (killed == std::string_view::npos)
    return std::nullopt;
  record.remove_prefix(killed);
  (void)take(record, ": Killed process ");
  const auto pid = take_number<pid_t>(record);
  if (!pid || !take(record, " ("))
    return std::nullopt;
  // A name may hold anything, this too, but not all that follows it.
  const auto name_end = record.find(") total-vm:");
  const auto uid_at = record.rfind(" UID:");
  if (name_end == std::string_view::npos || uid_at == std::string_view::npos || uid_at < name_end)
    return std::nullopt;
  found.pid = *pid;
  found.name = record.substr(0, name_end);
  record.remove_prefix(uid_at);
  (void)take(record, " UID:");
  const auto uid = take_number<std::uint32_t>(record);
  if (!uid)
    return std::nullopt;
  found.uid = *uid;
  return found;
}

kj::AutoCloseFd oom_log::open() {
  if (!is_namespace("/proc/self/ns/pid", first_pid_namespace)
      || !is_namespace("/proc/self/ns/user", first_user_namespace))
    return nullptr;
  kj::AutoCloseFd log{::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (log.get() >= 0 && ::lseek(log, 0, SEEK_END) < 0)
    return nullptr;
  return log;
}

void oom_log::read_on(std::uint32_t root) {
  char record[record_bytes_max];
  for (;;) {
    const auto n = ::read(log_, record, sizeof record);
    // EPIPE: what came next is overwritten; the read after it gives the oldest that is left.
    if (n < 0 && (errno == EINTR || errno == EPIPE))
      continue;
    if (n <= 0)
      return;
    auto victim = read_oom_record({record, static_cast<std::size_t>(n)});
    if (!victim || victim->uid < root || victim->uid - root >= ids_of_a_sandbox)
      continue;
    ++lines_;
    if (victims_.size() == victims_max)
      victims_.erase(victims_.begin());
    victims_.push_back(std::move(*victim));
  }
}

oom_log::finding
oom_log::of(pid_t pid, std::uint32_t root, clock::time_point began, std::uint64_t kills) {
  if (log_.get() < 0 || pid <= 0)
    return {};
  read_on(root);
  if (kills > lines_ + kills_missing_) {
    kills_missing_ = kills - lines_;
    missing_at_ = clock::now();
  }
  const auto found =
    std::find_if(victims_.rbegin(), victims_.rend(), [&](const auto& v) { return v.pid == pid; });
  if (found == victims_.rend())
    return {began > missing_at_ ? verdict::other : verdict::unknown, {}};
  finding answer{verdict::victim, std::move(*found)};
  victims_.erase(std::next(found).base());
  return answer;
}

} // namespace dsec::init
