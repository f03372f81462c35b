#include "tests/rootfs/layer_view.hpp"

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace dsec {

namespace {

void require(bool ok, const char* what) {
  if (!ok)
    throw std::runtime_error{std::string{what} + ": " + std::strerror(errno)};
}

} // namespace

layer_view::layer_view(const std::filesystem::path& store, const layer_digest& digest) {
  auto folder = store / digest.str();
  auto set = [](int fs, const char* key, const std::filesystem::path& value) {
    return ::fsconfig(fs, FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0;
  };
  int fs = ::fsopen("erofs", FSOPEN_CLOEXEC);
  require(fs >= 0, "fsopen erofs");
  require(set(fs, "source", folder / "layer.erofs"), "set source");
  require(set(fs, "device", folder / "layer.blob"), "set device");
  require(::fsconfig(fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0, "mount erofs");
  mount_ = ::fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
  require(mount_ >= 0, "fsmount");
  ::close(fs);
}

layer_view::~layer_view() {
  ::close(mount_);
}

std::filesystem::path layer_view::operator/(const std::filesystem::path& name) const {
  return std::filesystem::path{"/proc/self/fd"} / std::to_string(mount_) / name;
}

} // namespace dsec
