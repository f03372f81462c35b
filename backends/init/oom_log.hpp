#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec::init {

/// A process that the kernel says it killed for memory.
struct oom_victim {
  pid_t pid = -1;        ///< As the machine sees it.
  std::uint32_t uid = 0; ///< Likewise.
  std::string name;     ///< As it called itself, at most 15 bytes; the log escapes what is no text.
  bool machine = false; ///< The whole machine was out of memory, not the group of the process.
};

/// From one record of /dev/kmsg; nothing if it says something else, or was not written by the
/// kernel.
std::optional<oom_victim> read_oom_record(std::string_view record);

/// Whom the kernel's log says it killed for memory in this sandbox. Since Linux 5.x the line of a
/// victim is unconditional, and it is in the log before the victim can be reaped: the victim's own
/// end waits for it. The log is read when it is asked for and wakes nobody.
class oom_log {
public:
  using clock = std::chrono::steady_clock;

  /// What `open` gave.
  explicit oom_log(kj::AutoCloseFd log) : log_{kj::mv(log)} {}

  /// At the end of the log. Before the lockdown: it takes CAP_SYSLOG where dmesg_restrict is set.
  /// Nothing where the log cannot be read, or speaks of other pids and uids than the caller sees:
  /// then `of` never knows.
  static kj::AutoCloseFd open();

  enum class verdict {
    victim,  ///< The log names it.
    other,   ///< The log is complete and does not name it.
    unknown, ///< The log cannot be read, or lines were overwritten before they were.
  };

  struct finding {
    verdict what = verdict::unknown;
    oom_victim who; ///< Of a victim.
  };

  /// Of a main process that has ended: its pid and the uid of the sandbox's root, both as the
  /// machine sees them, and when its command began. `kills` is how many the control groups have
  /// counted in the sandbox ever.
  finding of(pid_t pid, std::uint32_t root, clock::time_point began, std::uint64_t kills);

private:
  void read_on(std::uint32_t root);

  kj::AutoCloseFd log_;
  std::vector<oom_victim> victims_; ///< Of this sandbox, not asked for yet.
  std::uint64_t lines_ = 0;
  std::uint64_t kills_missing_ = 0; ///< Counted, and not in the log any more.
  clock::time_point missing_at_{};
};

} // namespace dsec::init
