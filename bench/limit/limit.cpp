// The limit: the bare system calls of one sandbox, and nothing else. For every byte on standard
// input it builds a container (user, mount, pid, net, ipc, uts and cgroup namespaces; an overlay of
// the same layers with a subvolume as upper; proc, dev, pivot_root; the same groups and limits),
// runs a program in it, waits for its exit, and prints the milliseconds of that. Tearing down is
// not counted.
//
// dsec-bench-limit SCRATCH PROGRAM MEMORY_BYTES PROCESSES CPU_MILLI DISK_BYTES LAYER.erofs... (base
// first)

#include "bench/layer_mount.hpp"
#include "bench/waits.hpp"

#include <linux/btrfs.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <grp.h>
#include <sched.h>
#include <stdexcept>

namespace {

using namespace dsec::bench;

constexpr auto tear_down_patience = std::chrono::seconds{10};

struct limits {
  std::string memory_bytes;
  std::string processes;
  std::string cpu_milli;
  std::string disk_bytes;
};

struct group {
  std::string path;
  std::vector<std::pair<std::string, std::string>> limits;
};

/// The unified group comes first. Controllers are in v1 groups beside it, or all in it.
std::vector<group> find_groups(const limits& given) {
  const auto name = "/dsec-bench-limit-" + std::to_string(::getpid());
  const auto quota = std::to_string(std::stoul(given.cpu_milli) * 100);
  if (::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0)
    return {{"/sys/fs/cgroup" + name,
             {{"memory.max", given.memory_bytes},
              {"memory.swap.max", "0"},
              {"pids.max", given.processes},
              {"cpu.max", quota + " 100000"}}}};
  return {{"/sys/fs/cgroup/unified" + name, {}},
          {"/sys/fs/cgroup/memory" + name,
           {{"memory.limit_in_bytes", given.memory_bytes},
            {"memory.memsw.limit_in_bytes", given.memory_bytes}}},
          {"/sys/fs/cgroup/pids" + name, {{"pids.max", given.processes}}},
          {"/sys/fs/cgroup/cpu" + name, {{"cpu.cfs_quota_us", quota}}}};
}

class bare_container {
public:
  bare_container(std::string scratch, std::string program, const limits& given,
                 std::vector<fd> layers)
    : scratch_{std::move(scratch)},
      attach_{scratch_ + "/attach"},
      program_{std::move(program)},
      disk_bytes_{std::stoull(given.disk_bytes)},
      groups_{find_groups(given)},
      layers_{std::move(layers)},
      scratch_fd_{checked(::open(scratch_.c_str(), O_RDONLY | O_CLOEXEC), "open " + scratch_)} {
    checked(::mkdir(attach_.c_str(), 0755), "mkdir " + attach_);
  }

  bare_container(const bare_container&) = delete;
  bare_container& operator=(const bare_container&) = delete;

  ~bare_container() {
    tear_down();
    ::rmdir(attach_.c_str());
  }

  /// Milliseconds from the first call to the program's exit.
  double run() {
    const auto started = std::chrono::steady_clock::now();
    make_root();
    make_groups();
    const pid_t child = start();
    int status = 0;
    checked(::waitpid(child, &status, 0), "wait");
    const auto ended = std::chrono::steady_clock::now();
    tear_down();
    if (status != 0)
      throw std::runtime_error{program_ + " ended with status " + std::to_string(status)};
    return std::chrono::duration<double, std::milli>(ended - started).count();
  }

private:
  void make_root() {
    checked(::ioctl(scratch_fd_.get(), BTRFS_IOC_SUBVOL_CREATE, &volume_), "create subvolume");
    const fd volume{
      checked(::openat(scratch_fd_.get(), volume_.name, O_RDONLY | O_CLOEXEC), "open subvolume")};
    btrfs_ioctl_qgroup_limit_args limit{};
    limit.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
    limit.lim.max_rfer = disk_bytes_;
    checked(::ioctl(volume.get(), BTRFS_IOC_QGROUP_LIMIT, &limit), "limit subvolume");
    for (const auto* folder : {"upper", "work"}) {
      checked(::mkdirat(volume.get(), folder, 0755), folder);
      checked(::fchownat(volume.get(), folder, first_uid, first_uid, 0), folder);
    }
    const auto volume_path = scratch_ + "/" + volume_.name;
    root_ = mount_overlay(layers_, volume_path + "/upper", volume_path + "/work");
  }

  void make_groups() {
    for (const auto& group : groups_) {
      checked(::mkdir(group.path.c_str(), 0755), "mkdir " + group.path);
      for (const auto& [file, value] : group.limits)
        write_file(group.path + "/" + file, value);
    }
  }

  pid_t start() {
    const fd unified{checked(
      ::open(groups_.front().path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open group")};
    // A thread that moves itself takes no lock over all forks, as a write to cgroup.procs would.
    tasks_.clear();
    for (auto group = groups_.begin() + 1; group != groups_.end(); ++group)
      tasks_.emplace_back(checked(::open((group->path + "/tasks").c_str(), O_WRONLY | O_CLOEXEC),
                                  "open tasks of " + group->path));
    int gate[2];
    checked(::pipe2(gate, O_CLOEXEC), "pipe");
    const fd wait_end{gate[0]};
    fd open_end{gate[1]};
    clone_args how{};
    how.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC
                | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_INTO_CGROUP;
    how.exit_signal = SIGCHLD;
    how.cgroup = static_cast<std::uint64_t>(unified.get());
    const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
    if (checked(child, "clone3") == 0) {
      open_end.reset();
      char byte;
      if (::read(wait_end.get(), &byte, 1) == 1)
        become_program();
      ::_exit(9);
    }
    map_ids(child);
    checked(::write(open_end.get(), "x", 1), "let the child go on");
    return child;
  }

  /// Returns only if something failed.
  void become_program() noexcept {
    for (auto& tasks : tasks_)
      if (::write(tasks.get(), "0", 1) != 1)
        return std::perror("dsec-bench-limit: join a group");
    const bool built =
      ::setgroups(0, nullptr) == 0 && ::setresgid(0, 0, 0) == 0 && ::setresuid(0, 0, 0) == 0
      && ::move_mount(root_.get(), "", AT_FDCWD, attach_.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0
      && ::chdir(attach_.c_str()) == 0
      && ::mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0
      && ::mount("tmpfs", "dev", "tmpfs", MS_NOSUID, "size=64k,mode=755") == 0
      && ::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0
      && ::chdir("/") == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (built)
      ::execl(program_.c_str(), program_.c_str(), nullptr);
    std::perror("dsec-bench-limit: in the container");
  }

  /// Removes what there is, when the last task is out of its groups: of all of them at once, and
  /// the unified one tells.
  void tear_down() {
    root_.reset();
    wait_for_group(groups_.front().path, "populated 0", within(tear_down_patience));
    for (const auto& group : groups_)
      ::rmdir(group.path.c_str());
    ::ioctl(scratch_fd_.get(), BTRFS_IOC_SNAP_DESTROY, &volume_);
  }

  std::string scratch_;
  std::string attach_;
  std::string program_;
  std::uint64_t disk_bytes_;
  std::vector<group> groups_;
  std::vector<fd> layers_;
  std::vector<fd> tasks_;
  fd scratch_fd_;
  fd root_;
  btrfs_ioctl_vol_args volume_{0, "limit"};
};

void serve(char** words, int count) {
  checked(::unshare(CLONE_NEWNS), "unshare mounts");
  checked(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
  auto layers = mount_layers({words + 7, words + count});
  bare_container container{
    words[1], words[2], {words[3], words[4], words[5], words[6]}, std::move(layers)};
  for (char byte; ::read(STDIN_FILENO, &byte, 1) == 1;) {
    std::printf("%.6f\n", container.run());
    std::fflush(stdout);
  }
}

} // namespace

int main(int count, char** words) {
  if (count < 8) {
    std::fprintf(stderr,
                 "usage: %s SCRATCH PROGRAM MEMORY_BYTES PROCESSES CPU_MILLI DISK_BYTES LAYER...\n",
                 words[0]);
    return 2;
  }
  // Only end of input ends it, so that everything is removed.
  for (int number : {SIGINT, SIGTERM, SIGPIPE})
    ::signal(number, SIG_IGN);
  try {
    serve(words, count);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "dsec-bench-limit: %s\n", failure.what());
    return 1;
  }
}
