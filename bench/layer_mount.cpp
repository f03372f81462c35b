#include "bench/layer_mount.hpp"

#include "bench/new_namespace.hpp"

#include <sys/mount.h>

#include <sched.h>

namespace dsec::bench {

namespace {

fd mount_layer(const std::string& folder, const fd& user_namespace) {
  const auto image = folder + "/layer.erofs";
  const auto blob = folder + "/layer.blob";
  const fd context{checked(::fsopen("erofs", FSOPEN_CLOEXEC), "fsopen erofs")};
  checked(::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", image.c_str(), 0), image);
  if (::access(blob.c_str(), F_OK) == 0)
    checked(::fsconfig(context.get(), FSCONFIG_SET_STRING, "device", blob.c_str(), 0), blob);
  // Older kernels have no directio; pages are then cached twice, which changes no time measured
  // here.
  ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "directio", nullptr, 0);
  checked(::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0), "mount " + image);
  fd layer{checked(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY), "mount " + image)};
  mount_attr idmap{};
  idmap.attr_set = MOUNT_ATTR_IDMAP;
  idmap.userns_fd = static_cast<std::uint64_t>(user_namespace.get());
  checked(::mount_setattr(layer.get(), "", AT_EMPTY_PATH, &idmap, sizeof idmap), "idmap " + image);
  return layer;
}

} // namespace

void map_ids(pid_t child) {
  const auto proc = "/proc/" + std::to_string(child);
  const auto map = "0 " + std::to_string(first_uid) + " 65536";
  write_file(proc + "/uid_map", map);
  write_file(proc + "/gid_map", map);
}

std::vector<fd> mount_layers(const std::vector<std::string>& folders) {
  const auto user_namespace =
    make_namespace({.flag = CLONE_NEWUSER, .kind = "user", .outside = map_ids});
  std::vector<fd> layers;
  for (const auto& folder : folders)
    layers.push_back(mount_layer(folder, user_namespace));
  return layers;
}

fd mount_overlay(const std::vector<fd>& layers, const std::string& upper, const std::string& work) {
  const fd context{checked(::fsopen("overlay", FSOPEN_CLOEXEC), "fsopen overlay")};
  const auto set = [&](const char* option, const std::string& value) {
    checked(::fsconfig(context.get(), FSCONFIG_SET_STRING, option, value.c_str(), 0), option);
  };
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    checked(::fsconfig(context.get(), FSCONFIG_SET_FD, "lowerdir+", nullptr, layer->get()),
            "lowerdir+");
  set("upperdir", upper);
  set("workdir", work);
  checked(::fsconfig(context.get(), FSCONFIG_SET_FLAG, "volatile", nullptr, 0), "volatile");
  checked(::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0), "mount overlay");
  return fd{checked(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0), "mount overlay")};
}

} // namespace dsec::bench
