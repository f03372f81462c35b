#include "backends/init/exec_groups.hpp"

#include "backends/kill_point.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace dsec::init {

result<void> exec_group::kill() {
  kill_point(crash_role::init);
  killed_ = true;
  if (::write(kill_, "1", 1) != 1)
    return errno_error(errno, "write cgroup.kill");
  kill_point(crash_role::init);
  return {};
}

bool exec_group::empty() const {
  char buffer[256];
  ssize_t n = ::pread(events_, buffer, sizeof buffer, 0);
  return n > 0
         && std::string_view(buffer, static_cast<std::size_t>(n)).find("populated 0")
              != std::string_view::npos;
}

exec_groups::exec_groups(const launch& given)
  : payload_{given.payload_v2},
    unified_{given.memory_v1 < 0 && given.pids_v1 < 0},
    accounts_{given} {
  if (!unified_)
    return;
  // A machine that refuses leaves the sandbox's own numbers, which are enough for one command at a
  // time.
  const kj::AutoCloseFd control{::openat(payload_, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC)};
  for (const std::string_view controller : {"+memory", "+pids"})
    (void)!::write(control, controller.data(), controller.size());
}

std::uint64_t exec_groups::oom_kills(const exec_group& group) const {
  const auto& own = group.account();
  return (own.counts_memory() ? own : accounts_.whole()).oom_kills();
}

std::uint64_t exec_groups::forks_refused(const exec_group& group) const {
  const auto& own = group.account();
  return (own.counts_forks() ? own : accounts_.whole()).forks_refused();
}

void exec_groups::leave_account(exec_group& group) {
  if (group.joined_)
    exec_accounts::release(*group.joined_);
  group.joined_ = nullptr;
}

void exec_groups::remove_killed() {
  std::erase_if(killed_, [this](const auto& group) {
    if (::unlinkat(payload_, group->name().c_str(), AT_REMOVEDIR) != 0)
      return false;
    leave_account(*group);
    return true;
  });
}

result<std::unique_ptr<exec_group>> exec_groups::make() {
  const auto name = "e" + std::to_string(made_);
  kill_point(crash_role::init);
  if (::mkdirat(payload_, name.c_str(), 0755) != 0 && errno != EEXIST)
    return errno_error(errno, "make the control group " + name);
  kill_point(crash_role::init);
  kj::AutoCloseFd directory{::openat(payload_, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  auto open_file = [&](const char* file, int flags) {
    return kj::AutoCloseFd{::openat(directory, file, flags | O_CLOEXEC)};
  };
  auto kill = open_file("cgroup.kill", O_WRONLY);
  auto events = open_file("cgroup.events", O_RDONLY);
  // Who clones into a group must be allowed to write to the cgroup.procs of the group and of the
  // lowest group above both it and his own. The latter is what only PID 1's user may.
  if (kill.get() < 0 || events.get() < 0 || ::fchmodat(directory, "cgroup.procs", 0666, 0) != 0)
    return errno_error(errno, "open the files of the control group " + name);
  std::unique_ptr<exec_account> own;
  if (unified_) {
    // Since Linux 6.11 pids.events counts what its own limit refused, and it has none.
    const bool forks = ::faccessat(directory, "pids.events.local", F_OK, 0) != 0;
    own = std::make_unique<exec_account>(made_ + 1, directory, forks ? directory.get() : -1, false);
  }
  auto group =
    std::make_unique<exec_group>(made_++, kj::mv(directory), kj::mv(kill), kj::mv(events));
  group->own_account_ = std::move(own);
  return group;
}

result<std::unique_ptr<exec_group>> exec_groups::with_account(std::unique_ptr<exec_group> group) {
  if (!unified_ && accounts_.exhausted())
    for (auto& other : released_)
      if (other->joined_ && other->empty()) {
        leave_account(*other);
        other->idle_ = true;
      }
  if (!unified_)
    group->joined_ = &accounts_.acquire();
  group->idle_ = false;
  return group;
}

result<std::unique_ptr<exec_group>> exec_groups::acquire() {
  remove_killed();
  // A few looks are enough: what is not empty now goes behind the others.
  constexpr std::size_t looks_max = 4;
  for (std::size_t i = 0, n = std::min(looks_max, released_.size()); i < n; ++i) {
    auto group = std::move(released_.front());
    released_.pop_front();
    if (group->idle_ || group->empty()) {
      leave_account(*group);
      return with_account(std::move(group));
    }
    released_.push_back(std::move(group));
  }
  auto made = make();
  return made ? with_account(std::move(*made)) : std::move(made);
}

void exec_groups::release(std::unique_ptr<exec_group> group) {
  if (group->killed()) {
    killed_.push_back(std::move(group));
    return remove_killed();
  }
  // Nobody enters a group that is empty, so this is known for as long as it lies here.
  group->idle_ = group->empty();
  if (group->idle_)
    leave_account(*group);
  // The one that was used last is the likeliest to be empty next time, after a short command.
  released_.push_front(std::move(group));
}

} // namespace dsec::init
