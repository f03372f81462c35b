#include "backends/init/confine.hpp"

#include "backends/init/capabilities.hpp"
#include "backends/init/landlock.hpp"
#include "backends/init/seccomp_filter.hpp"

#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace dsec::init {

namespace {

template <class... N>
constexpr std::uint64_t bits(N... numbers) {
  return ((1ULL << numbers) | ...);
}

// Enough to be root over the sandbox's own files and processes. None of them reaches PID 1 or a
// mount.
constexpr auto payload_capabilities =
  bits(CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID,
       CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETFCAP, CAP_AUDIT_WRITE);

void refuse_all(seccomp_filter& filter, std::initializer_list<long> numbers) {
  for (long n : numbers)
    filter.refuse(n, EPERM);
}

int filter_payload() {
  seccomp_filter f;
  // What reaches the machine itself, or kernel code that only administrators exercise.
  refuse_all(f, {SYS_reboot,
                 SYS_kexec_load,
                 SYS_kexec_file_load,
                 SYS_init_module,
                 SYS_finit_module,
                 SYS_delete_module,
                 SYS_bpf,
                 SYS_perf_event_open,
                 SYS_userfaultfd,
                 SYS_io_uring_setup,
                 SYS_io_uring_enter,
                 SYS_io_uring_register,
                 SYS_keyctl,
                 SYS_add_key,
                 SYS_request_key,
                 SYS_swapon,
                 SYS_swapoff,
                 SYS_settimeofday,
                 SYS_clock_settime,
                 SYS_clock_adjtime,
                 SYS_adjtimex,
                 SYS_quotactl,
                 SYS_quotactl_fd,
                 SYS_name_to_handle_at,
                 SYS_open_by_handle_at,
                 SYS_acct,
                 SYS_syslog,
                 SYS_lookup_dcookie,
                 SYS_vhangup,
                 SYS_nfsservctl});
#if defined(__x86_64__)
  refuse_all(f, {SYS_iopl, SYS_ioperm, SYS_uselib, SYS_ustat, SYS__sysctl, SYS_modify_ldt});
#endif
  // The mount tree and the namespaces are as the sandbox was made.
  refuse_all(f, {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
                 SYS_fspick, SYS_move_mount, SYS_open_tree, SYS_mount_setattr, SYS_setns});
  // Later than Debian 12's headers: open_tree_attr.
  f.refuse(467, EPERM);
  f.refuse_bits(SYS_unshare, 0, CLONE_NEWUSER, EPERM);
  f.refuse_bits(SYS_clone, 0, CLONE_NEWUSER, EPERM);
  // Shares extents as FICLONE does; callers fall back to read and write.
  f.refuse(SYS_copy_file_range, ENOSYS);
  f.allow_only(SYS_personality, 0, {0, 0xffffffff, PER_LINUX32, ADDR_NO_RANDOMIZE, UNAME26}, EPERM);

  // The file system's own machinery (reflinks, freezing, attributes) and typing into a terminal.
  f.refuse_masked(SYS_ioctl, 1, 0xff00, 0x9400,
                  EPERM); // btrfs, FICLONE, FICLONERANGE, FIDEDUPERANGE
  f.refuse_values(SYS_ioctl, 1,
                  {
                    0xc0c0586d, // XFS_IOC_SWAPEXT
                    0x40285881, // XFS_IOC_EXCHANGE_RANGE
                    0xc0045877, // FIFREEZE
                    0xc0045878, // FITHAW
                    0xc0185879, // FITRIM
                    0x5412,     // TIOCSTI
                    0x541c,     // TIOCLINUX
                    0x40086602, // FS_IOC_SETFLAGS
                    0x40046602, // FS_IOC32_SETFLAGS
                    0x401c5820, // FS_IOC_FSSETXATTR
                  },
                  EPERM);

  f.allow_only(SYS_socket, 0, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}, EAFNOSUPPORT);
  f.allow_only_where(SYS_socket, 0, AF_NETLINK, 2, {NETLINK_ROUTE}, EPROTONOSUPPORT);
  return f.install();
}

/// Making device nodes and changing mounts is refused to everyone in the domain. Renaming between
/// directories must be handled and granted: a domain that does not mention it refuses it.
int restrict_payload() {
  constexpr auto refer = 1ULL << 13;
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return errno;
  int failed = 0;
  // Without the right to grant renames (Linux 5.13 to 5.18), the domain would break every mv and
  // link.
  if (landlock_version() >= 2)
    failed = landlock_restrict(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | refer,
                               {{root, refer}}, false);
  ::close(root);
  return failed;
}

} // namespace

int forbid_user_namespaces() {
  const int most = ::open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
  if (most < 0)
    return errno;
  const int failed = ::write(most, "0", 1) == 1 ? 0 : errno;
  ::close(most);
  return failed;
}

int confine_payload(bool allow_setuid, const char** stage) {
  *stage = "no_new_privs";
  if (!allow_setuid && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return errno;
  *stage = "landlock";
  if (int failed = restrict_payload())
    return failed;
  *stage = "seccomp";
  if (int failed = filter_payload())
    return failed;
  *stage = "capabilities";
  return keep_capabilities(payload_capabilities);
}

} // namespace dsec::init
