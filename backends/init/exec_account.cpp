#include "backends/init/exec_account.hpp"

#include "backends/init/counters.hpp"
#include "backends/kill_point.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

namespace dsec::init {

namespace {

/// Each costs the sandbox a memory group: some 100 KiB that count towards its memory limit.
constexpr unsigned accounts_max = 16;

kj::AutoCloseFd open_in(int folder, const char* name, int flags) {
  return kj::AutoCloseFd{folder < 0 ? -1 : ::openat(folder, name, flags | O_CLOEXEC)};
}

/// v2 says "memory.events", v1 "memory.oom_control".
kj::AutoCloseFd open_oom_file(int memory) {
  auto file = open_in(memory, "memory.oom_control", O_RDONLY);
  return file.get() >= 0 ? kj::mv(file) : open_in(memory, "memory.events", O_RDONLY);
}

} // namespace

exec_account::exec_account(unsigned number, int memory, int pids, bool joined)
  : number_{number},
    oom_{open_oom_file(memory)},
    refusals_{open_in(pids, "pids.events", O_RDONLY)} {
  if (!joined)
    return;
  // "tasks", where a thread moves itself without the lock over all forks that a write to
  // cgroup.procs takes.
  memory_tasks_ = open_in(memory, "tasks", O_WRONLY);
  pids_tasks_ = open_in(pids, "tasks", O_WRONLY);
}

std::uint64_t exec_account::oom_kills() const {
  return counted_in(oom_, "oom_kill");
}

std::uint64_t exec_account::forks_refused() const {
  return counted_in(refusals_, "max");
}

exec_accounts::exec_accounts(const launch& given)
  : memory_v1_{given.memory_v1},
    pids_v1_{given.pids_v1} {
  const bool joined = memory_v1_ >= 0 || pids_v1_ >= 0;
  all_.push_back(std::make_unique<exec_account>(0, memory_v1_ >= 0 ? memory_v1_ : given.payload_v2,
                                                pids_v1_ >= 0 ? pids_v1_ : given.payload_v2,
                                                joined));
}

std::unique_ptr<exec_account> exec_accounts::make(unsigned number) const {
  const auto name = "a" + std::to_string(number);
  auto make_in = [&](int folder) {
    if (folder < 0)
      return kj::AutoCloseFd{};
    kill_point(crash_role::init);
    if (::mkdirat(folder, name.c_str(), 0755) != 0 && errno != EEXIST)
      return kj::AutoCloseFd{};
    kill_point(crash_role::init);
    return open_in(folder, name.c_str(), O_PATH | O_DIRECTORY);
  };
  const auto memory = make_in(memory_v1_);
  const auto pids = make_in(pids_v1_);
  auto made = std::make_unique<exec_account>(number, memory, pids, true);
  // A half that is missing would leave its process in the group of another.
  const bool whole =
    (memory_v1_ < 0 || made->memory_tasks() >= 0) && (pids_v1_ < 0 || made->pids_tasks() >= 0);
  return whole ? std::move(made) : nullptr;
}

bool exec_accounts::exhausted() const {
  return (all_.size() == accounts_max || !may_make_)
         && std::none_of(all_.begin(), all_.end(), [](const auto& a) { return a->users == 0; });
}

exec_account& exec_accounts::acquire() {
  auto least = std::min_element(all_.begin(), all_.end(),
                                [](const auto& a, const auto& b) { return a->users < b->users; });
  auto* chosen = least->get();
  if (chosen->users > 0 && all_.size() < accounts_max && may_make_) {
    if (auto made = make(static_cast<unsigned>(all_.size()))) {
      all_.push_back(std::move(made));
      chosen = all_.back().get();
    } else {
      may_make_ = false; // The machine has no more groups to give.
    }
  }
  ++chosen->users;
  return *chosen;
}

std::uint64_t exec_accounts::oom_kills() const {
  std::uint64_t sum = 0;
  for (const auto& account : all_)
    sum += account->oom_kills();
  return sum;
}

} // namespace dsec::init
