#include "backends/spawner/machine.hpp"

#include "backends/init/launch.hpp"
#include "backends/kill_point.hpp"
#include "backends/spawner/swap.hpp"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <time.h>

namespace dsec::spawner {

namespace {

/// Makes a directory with its parents and returns its canonical path.
result<std::string> make_directory(const std::string& path) {
  for (std::size_t slash = 1; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    if (::mkdir(path.substr(0, slash).c_str(), 0755) < 0 && errno != EEXIST)
      return errno_error(errno, "make directory " + path);
  }
  char canonical[PATH_MAX];
  if (!::realpath(path.c_str(), canonical))
    return errno_error(errno, "resolve directory " + path);
  return std::string{canonical};
}

bool same_file(int fd, const std::string& path) {
  struct stat a {
  }, b{};

  return ::fstat(fd, &a) == 0 && ::stat(path.c_str(), &b) == 0 && a.st_ino == b.st_ino
         && a.st_dev == b.st_dev;
}

pid_t owner_in(int lock) {
  char text[32] = {};
  (void)!::pread(lock, text, sizeof text - 1, 0);
  return std::atoi(text);
}

/// The workers of a spawner that was killed hold its lock until they have ended, which they are
/// about to.
result<descriptor> take_instance_lock(const std::string& path) {
  for (int attempt = 0;; ++attempt) {
    descriptor lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
    if (!lock)
      return errno_error(errno, "open " + path);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      if (!same_file(lock.get(), path))
        continue; // A spawner that ended has just removed it.
      auto text = std::to_string(::getpid()) + '\n';
      if (::ftruncate(lock.get(), 0) < 0 || ::pwrite(lock.get(), text.data(), text.size(), 0) < 0)
        return errno_error(errno, "write " + path);
      return lock;
    }
    auto owner = owner_in(lock.get());
    bool alive = owner > 0 && ::kill(owner, 0) == 0;
    if (attempt == 500 || (alive && attempt >= 20))
      return error{errc::state_in_use, "start on " + path + ": the spawner with pid "
                                         + std::to_string(owner) + " has it"};
    timespec pause{0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

/// Mode 0111 is the wall: a process that cannot read its own program gives nothing of its memory
/// away to the user namespace it runs in.
result<descriptor> make_program() {
  auto program = init::reaper_program();
  descriptor file{::memfd_create("dsec-reaper", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file
      || ::write(file.get(), program.bytes, program.size) != static_cast<ssize_t>(program.size)
      || ::fchmod(file.get(), 0111) < 0
      || ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
           < 0)
    return errno_error(errno, "make the reaper's program");
  // Nobody may execute what somebody has open for writing.
  descriptor reader{
    ::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!reader)
    return errno_error(errno, "open the reaper's program");
  return reader;
}

} // namespace

result<std::unique_ptr<machine>> machine::open(const options& chosen) {
  auto run_path = make_directory(chosen.run_dir);
  if (!run_path)
    return run_path.error();
  auto data_path = make_directory(chosen.data_dir);
  if (!data_path)
    return data_path.error();
  names chosen_names{*run_path, *data_path};
  auto lock = take_instance_lock(chosen_names.run("spawner.lock"));
  if (!lock)
    return lock.error();
  descriptor run_dir{::open(run_path->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!run_dir)
    return errno_error(errno, "open " + *run_path);
  descriptor host_name{::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC)};
  if (!host_name)
    return errno_error(errno, "open the machine's UTS namespace");
  std::ifstream mountinfo{"/proc/self/mountinfo"};
  auto layout = read_cgroup_layout(
    std::string{std::istreambuf_iterator<char>{mountinfo}, std::istreambuf_iterator<char>{}});
  if (!layout)
    return layout.error();
  // What is most likely to be refused comes first, so that a refusal leaves no groups behind.
  auto opened = scratch::open(chosen_names, chosen.scratch_bytes);
  if (!opened)
    return opened.error();
  cgroups tree{*layout, chosen_names.cgroup_root()};
  if (auto ok = tree.prepare(); !ok)
    return ok.error();
  if (auto ok = tree.enter_own_group(); !ok)
    return ok.error();
  auto program = make_program();
  if (!program)
    return program.error();
  // shared_mounts keeps a pointer to the names, so these must stand where they stay.
  std::unique_ptr<machine> made{
    new machine{std::move(chosen_names), std::move(tree), *std::move(opened), shared_mounts{},
                std::move(run_dir), *std::move(lock), std::move(host_name), *std::move(program)}};
  auto mounts = shared_mounts::open(made->where);
  if (!mounts)
    return mounts.error();
  made->mounts = *std::move(mounts);
  made->swap_bytes = start_swap(made->where, chosen.swap_bytes, made->swap_why_not);
  made->trace = chosen.trace;
  return made;
}

result<void> machine::close() {
  if (auto ok = mounts.unmount(); !ok)
    return ok;
  if (auto ok = disk.unmount(); !ok)
    return ok;
  stop_swap(where);
  if (auto ok = groups.remove_roots(); !ok)
    return ok;
  ::unlink(where.run("spawner.sock").c_str());
  ::unlink(where.run("spawner.lock").c_str());
  return {};
}

} // namespace dsec::spawner
