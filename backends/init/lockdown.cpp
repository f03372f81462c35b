#include "backends/init/lockdown.hpp"

#include "backends/init/capabilities.hpp"
#include "backends/init/landlock.hpp"
#include "backends/init/seccomp_filter.hpp"

#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace dsec::init {

namespace {

void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned next = 3;
  for (int fd : kept) {
    if (fd < static_cast<int>(next))
      continue;
    if (static_cast<unsigned>(fd) > next)
      ::syscall(SYS_close_range, next, static_cast<unsigned>(fd) - 1, 0);
    next = static_cast<unsigned>(fd) + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0);
}

/// The crash tests' marker is made by this process, wherever it lies.
kj::AutoCloseFd crash_marker_folder() {
  const char* setting = std::getenv("DSEC_KILL_AT");
  if (!setting)
    return nullptr;
  std::string path = setting;
  path = path.substr(path.rfind(':') + 1);
  const auto slash = path.rfind('/');
  path = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return kj::AutoCloseFd{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

int restrict_files(const launch& given, const privileged_files& files) {
  constexpr std::uint64_t truncate = 1ULL << 14;
  constexpr std::uint64_t write = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG
                                  | LANDLOCK_ACCESS_FS_REMOVE_FILE | truncate;
  constexpr std::uint64_t groups = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE
                                   | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR
                                   | truncate;
  const int version = landlock_version();
  const auto all = landlock_all_rights(version);
  // The file tasks' work inside the sandbox: everything but what only an agent's own processes
  // do.
  const auto inside = all
                      & ~std::uint64_t{LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR
                                       | LANDLOCK_ACCESS_FS_MAKE_BLOCK};
  const auto marker = crash_marker_folder();
  return landlock_restrict(all,
                           {{given.run_dir, write},
                            {given.scratch_dir, write},
                            {given.payload_v2, groups},
                            {given.memory_v1, groups},
                            {given.pids_v1, groups},
                            {given.cpu_v1, groups},
                            {files.root, inside},
                            {files.disk_account, LANDLOCK_ACCESS_FS_READ_FILE},
                            {marker, write | LANDLOCK_ACCESS_FS_READ_FILE}},
                           true);
}

int filter_calls() {
  seccomp_filter f;
  for (long number : {SYS_execve,
                      SYS_execveat,
                      SYS_ptrace,
                      SYS_process_vm_readv,
                      SYS_process_vm_writev,
                      SYS_mount,
                      SYS_umount2,
                      SYS_pivot_root,
                      SYS_chroot,
                      SYS_fsopen,
                      SYS_fsconfig,
                      SYS_fsmount,
                      SYS_fspick,
                      SYS_move_mount,
                      SYS_open_tree,
                      SYS_mount_setattr,
                      SYS_unshare,
                      SYS_bpf,
                      SYS_perf_event_open,
                      SYS_userfaultfd,
                      SYS_keyctl,
                      SYS_add_key,
                      SYS_request_key,
                      SYS_kexec_load,
                      SYS_kexec_file_load,
                      SYS_init_module,
                      SYS_finit_module,
                      SYS_delete_module,
                      SYS_io_uring_setup,
                      SYS_io_uring_enter,
                      SYS_io_uring_register,
                      SYS_reboot,
                      SYS_swapon,
                      SYS_swapoff,
                      SYS_quotactl,
                      SYS_acct,
                      SYS_settimeofday,
                      SYS_clock_settime,
                      SYS_adjtimex,
                      SYS_clock_adjtime,
                      SYS_name_to_handle_at,
                      SYS_open_by_handle_at,
                      SYS_syslog,
                      SYS_personality,
                      SYS_sethostname,
                      SYS_setdomainname,
                      SYS_mknod,
                      SYS_mknodat,
                      SYS_pidfd_getfd})
    f.refuse(number, EPERM);
  f.allow_only(SYS_socket, 0, {AF_UNIX}, EAFNOSUPPORT);
  return f.install();
}

} // namespace

result<void> lock_down(const launch& given, const privileged_files& files) {
  ::prctl(PR_SET_NAME, "dsec-init");
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU})
    ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  std::vector<int> kept{given.listener,    given.reaper_socket,  given.reaper_pidfd,
                        given.lock,        given.run_dir,        given.scratch_dir,
                        given.payload_v2,  given.memory_v1,      given.pids_v1,
                        given.cpu_v1,      files.user_namespace, files.mount_namespace,
                        files.root,        files.null_device,    files.kernel_log,
                        files.disk_account};
  kept.insert(kept.end(), given.for_assigning.begin(), given.for_assigning.end());
  close_all_but(std::move(kept));
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return errno_error(errno, "lockdown: no_new_privs");
  if (int number = restrict_files(given, files))
    return errno_error(number, "lockdown: landlock");
  if (int number = filter_calls())
    return errno_error(number, "lockdown: seccomp");
  if (int number = keep_capabilities(0))
    return errno_error(number, "lockdown: capabilities");
  return {};
}

} // namespace dsec::init
