#include "backends/spawner/overlay.hpp"

#include "backends/kill_point.hpp"
#include "backends/spawner/mounts.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <sched.h>
#include <string>

namespace dsec::spawner {

namespace {

void at_effect() {
  kill_point(crash_role::spawner);
}

result<descriptor> open_overlay() {
  descriptor context{::fsopen("overlay", FSOPEN_CLOEXEC)};
  if (!context)
    return errno_error(errno, "mount overlay: open filesystem type overlay");
  return context;
}

bool set_name(int context, const char* key, const std::string& value) {
  return ::fsconfig(context, FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0;
}

/// All but the lower layers, and the superblock.
bool create(int context, const std::string& scratch) {
  return set_name(context, "source", "dsec") && set_name(context, "upperdir", scratch + "/upper")
         && set_name(context, "workdir", scratch + "/work")
         // It is never mounted again; what must last is synced at the scratch.
         && ::fsconfig(context, FSCONFIG_SET_FLAG, "volatile", nullptr, 0) == 0
         && ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
}

/// errno of the failure, or 0.
int create_from_descriptors(int context, const std::vector<descriptor>& lower, int scratch) {
  for (auto layer = lower.rbegin(); layer != lower.rend(); ++layer)
    if (::fsconfig(context, FSCONFIG_SET_FD, "lowerdir+", nullptr, layer->get()) != 0)
      return errno;
  return create(context, "/proc/self/fd/" + std::to_string(scratch)) ? 0 : errno;
}

/// Makes `name` and puts the mount there.
bool attach(int mount, const char* name) {
  return ::mkdir(name, 0700) == 0
         && ::move_mount(mount, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/// In a process of its own, whose mount namespace ends with it: the overlay keeps what it needs.
/// Relative names, because the sandbox can read them in its mount table.
int create_from_names(int context, const std::vector<descriptor>& lower, const std::string& scratch,
                      const std::string& place) {
  constexpr auto upper = "scratch";
  if (::unshare(CLONE_NEWNS) != 0
      || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return errno;
  descriptor own{::open_tree(AT_FDCWD, scratch.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
  if (!own || ::mount("dsec-layers", place.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0
      || ::chdir(place.c_str()) != 0 || !attach(own.get(), upper))
    return errno;
  for (auto i = lower.size(); i-- > 0;) {
    const auto name = std::to_string(i);
    if (!attach(lower[i].get(), name.c_str()) || !set_name(context, "lowerdir+", name))
      return errno;
  }
  return create(context, upper) ? 0 : errno;
}

result<std::string> name_of(int directory) {
  char text[PATH_MAX];
  const auto size =
    ::readlink(("/proc/self/fd/" + std::to_string(directory)).c_str(), text, sizeof text);
  if (size < 0)
    return errno_error(errno, "mount overlay: name of the scratch");
  return std::string(text, static_cast<std::size_t>(size));
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/// The older way: kernels before 6.15 stack only what is attached in the caller's mount namespace.
result<descriptor>
overlay_of_attached(const std::vector<descriptor>& lower, int scratch, const std::string& place) {
  auto context = open_overlay();
  if (!context)
    return context;
  const auto scratch_name = name_of(scratch);
  if (!scratch_name)
    return scratch_name.error();
  at_effect();
  const auto child = ::fork();
  if (child < 0)
    return errno_error(errno, "mount overlay: fork");
  if (child == 0)
    ::_exit(create_from_names(context->get(), lower, *scratch_name, place));
  if (int number = wait_for(child); number != 0)
    return mount_error(number, context->get(), "mount overlay");
  at_effect();
  return context;
}

} // namespace

result<descriptor>
overlay(const std::vector<descriptor>& lower, int scratch, const std::string& place) {
  auto context = open_overlay();
  if (!context)
    return context;
  at_effect();
  const int number = create_from_descriptors(context->get(), lower, scratch);
  at_effect();
  if (number == EBADF || number == EINVAL) {
    auto older = overlay_of_attached(lower, scratch, place);
    // What the present way says of a fault of the layers themselves is the better word.
    if (!older && number == EBADF)
      return older;
    if (!older)
      return mount_error(number, context->get(), "mount overlay");
    context = std::move(older);
  } else if (number != 0) {
    return mount_error(number, context->get(), "mount overlay");
  }
  descriptor mount{
    ::fsmount(context->get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME)};
  if (!mount)
    return errno_error(errno, "mount overlay");
  return mount;
}

} // namespace dsec::spawner
