#include "backends/spawner/mounts.hpp"

#include "backends/kill_point.hpp"
#include "backends/spawner/scratch.hpp"

#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>

namespace dsec::spawner {

namespace {

void at_effect() {
  kill_point(crash_role::spawner);
}

/// A detached mount of a layer's images. `direct` keeps a file-backed EROFS from being cached
/// twice.
result<descriptor> mount_layer(const std::string& folder, const std::string& digest, bool direct) {
  auto image = folder + "/layer.erofs";
  auto blob = folder + "/layer.blob";
  descriptor context{::fsopen("erofs", FSOPEN_CLOEXEC)};
  if (!context)
    return errno_error(errno, "mount layer " + digest + ": open filesystem type erofs");
  auto set = [&](const char* key, const std::string& value) {
    return ::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0;
  };
  bool ok = set("source", image) && (::access(blob.c_str(), F_OK) < 0 || set("device", blob));
  if (ok && direct)
    ok = ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "directio", nullptr, 0) == 0;
  if (!ok || ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return mount_error(errno, context.get(), "mount layer " + digest);
  descriptor mount{::fsmount(context.get(), FSMOUNT_CLOEXEC,
                             MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME)};
  if (!mount)
    return errno_error(errno, "mount layer " + digest);
  return mount;
}

result<void> fill_device_tree(int tree) {
  struct node {
    const char* name;
    unsigned minor_of_memory;
  };

  // For everybody inside, whatever our own umask is.
  auto make = [tree](const char* name, dev_t device) {
    return ::mknodat(tree, name, S_IFCHR | 0666, device) == 0
           && ::fchmodat(tree, name, 0666, 0) == 0;
  };
  for (auto [name, minor_number] :
       {node{"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}})
    if (!make(name, makedev(1, minor_number)))
      return errno_error(errno, std::string{"make device "} + name);
  if (!make("tty", makedev(5, 0)))
    return errno_error(errno, "make device tty");
  for (auto [link, target] : {std::pair{"fd", "/proc/self/fd"},
                              {"stdin", "/proc/self/fd/0"},
                              {"stdout", "/proc/self/fd/1"},
                              {"stderr", "/proc/self/fd/2"},
                              {"ptmx", "pts/ptmx"}})
    if (::symlinkat(target, tree, link) < 0)
      return errno_error(errno, std::string{"link device "} + link);
  for (auto* folder : {"pts", "shm", "mqueue"})
    if (::mkdirat(tree, folder, 0755) < 0)
      return errno_error(errno, std::string{"make device folder "} + folder);
  return {};
}

result<descriptor> mount_devices(const std::string& target) {
  descriptor context{::fsopen("tmpfs", FSOPEN_CLOEXEC)};
  if (!context || ::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", "dsec-dev", 0) < 0
      || ::fsconfig(context.get(), FSCONFIG_SET_STRING, "mode", "0755", 0) < 0
      || ::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", "64k", 0) < 0
      || ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return errno_error(errno, "mount the device tree");
  descriptor mount{
    ::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)};
  if (!mount)
    return errno_error(errno, "mount the device tree");
  // Filled before it is attached: what stands at `target` is always whole.
  if (auto filled = fill_device_tree(mount.get()); !filled)
    return filled.error();
  at_effect();
  if (::move_mount(mount.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0)
    return errno_error(errno, "attach the device tree at " + target);
  at_effect();
  return mount;
}

result<descriptor> open_path(int directory, const std::string& path) {
  descriptor fd{::openat(directory, path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!fd)
    return errno_error(errno, "open " + path);
  return fd;
}

result<void> unmount_at(const std::string& path) {
  at_effect();
  if (::umount2(path.c_str(), UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
    return errno_error(errno, "unmount " + path);
  at_effect();
  ::rmdir(path.c_str());
  return {};
}

} // namespace

error mount_error(int number, int context, const std::string& what) {
  auto found = errno_error(number, what);
  char text[256];
  for (ssize_t size; (size = ::read(context, text, sizeof text)) > 2;)
    found.message += "; " + std::string(text + 2, static_cast<std::size_t>(size - 2));
  while (!found.message.empty() && found.message.back() == '\n')
    found.message.pop_back();
  return found;
}

result<shared_mounts> shared_mounts::open(const names& where) {
  shared_mounts mounts{where};
  for (auto name : {"layers", "dev"})
    if (::mkdir(where.run(name).c_str(), 0700) < 0 && errno != EEXIST)
      return errno_error(errno, "make " + where.run(name));
  auto layers = open_path(AT_FDCWD, where.run("layers"));
  if (!layers)
    return layers.error();
  mounts.layers_ = *std::move(layers);
  auto devices = is_mount_point(AT_FDCWD, where.run("dev")) ? open_path(AT_FDCWD, where.run("dev"))
                                                            : mount_devices(where.run("dev"));
  if (!devices)
    return devices.error();
  mounts.devices_ = *std::move(devices);
  return mounts;
}

result<descriptor> shared_mounts::layer(const std::string& digest) const {
  if (is_mount_point(layers_.get(), digest))
    return open_path(layers_.get(), digest);
  auto folder = where_->data("store/" + digest);
  if (::access((folder + "/layer.erofs").c_str(), F_OK) < 0)
    return error{errc::not_found, "mount layer " + digest + ": the store has no such layer"};
  if (::mkdirat(layers_.get(), digest.c_str(), 0700) < 0 && errno != EEXIST)
    return errno_error(errno, "make the mount point of layer " + digest);
  // The lock is on the directory below the mount: it keeps two first users from mounting twice.
  auto point =
    descriptor{::openat(layers_.get(), digest.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!point || ::flock(point.get(), LOCK_EX) < 0)
    return errno_error(errno, "lock the mount point of layer " + digest);
  if (is_mount_point(layers_.get(), digest))
    return open_path(layers_.get(), digest);
  auto mount = mount_layer(folder, digest, true);
  if (!mount)
    mount = mount_layer(folder, digest, false);
  if (!mount) {
    auto found = mount.error();
    if (found.code == errc::invalid_argument)
      found.code = errc::corrupt;
    return found;
  }
  at_effect();
  if (::move_mount(mount->get(), "", layers_.get(), digest.c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0)
    return errno_error(errno, "attach layer " + digest);
  at_effect();
  return mount;
}

result<void> shared_mounts::unmount() {
  devices_.reset();
  layers_.reset();
  std::vector<std::string> paths{where_->run("dev")};
  if (DIR* directory = ::opendir(where_->run("layers").c_str())) {
    while (auto* entry = ::readdir(directory))
      if (valid_digest(entry->d_name))
        paths.push_back(where_->run("layers/") + entry->d_name);
    ::closedir(directory);
  }
  for (auto& path : paths)
    if (auto gone = unmount_at(path); !gone)
      return gone;
  ::rmdir(where_->run("layers").c_str());
  return {};
}

result<descriptor> idmapped_copy(int mount, int user_namespace, const std::string& what) {
  descriptor copy{::open_tree(mount, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
  if (!copy)
    return errno_error(errno, "copy the mount of " + what);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY;
  attributes.userns_fd = static_cast<std::uint64_t>(user_namespace);
  if (::mount_setattr(copy.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
    return errno_error(errno, "map the ids of " + what);
  return copy;
}

} // namespace dsec::spawner
