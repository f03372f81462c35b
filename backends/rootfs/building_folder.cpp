#include "backends/rootfs/building_folder.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace dsec {

namespace {

constexpr std::string_view prefix = ".building-";

file_descriptor open_folder(const std::filesystem::path& x) {
  return file_descriptor{::open(x.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

/// Under the store's own lock, so that no folder is seen between its making and its locking.
void remove_leftovers(const std::filesystem::path& store) {
  std::error_code ignored;
  for (const auto& x : std::filesystem::directory_iterator{store, ignored}) {
    if (!x.path().filename().native().starts_with(prefix))
      continue;
    auto folder = open_folder(x.path());
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0)
      std::filesystem::remove_all(x.path(), ignored);
  }
}

} // namespace

building_folder::building_folder(std::filesystem::path path, file_descriptor lock)
  : path_{std::move(path)},
    lock_{std::move(lock)} {}

building_folder::~building_folder() {
  std::error_code ignored;
  if (lock_)
    std::filesystem::remove_all(path_, ignored);
}

result<building_folder> building_folder::make(const std::filesystem::path& store) {
  auto what = fmt::format("prepare layer store {}", store.string());
  std::error_code failure;
  std::filesystem::create_directories(store, failure);
  if (failure)
    return errno_error(failure.value(), what);
  auto whole = open_folder(store);
  if (!whole || ::flock(whole.get(), LOCK_EX) != 0)
    return errno_error(errno, what + ": lock");
  remove_leftovers(store);
  auto path = (store / prefix).string() + "XXXXXX";
  if (!::mkdtemp(path.data()))
    return errno_error(errno, what + ": make a folder");
  auto lock = open_folder(path);
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    return errno_error(errno, what + ": lock " + path);
  return building_folder{path, std::move(lock)};
}

result<void> sync_folder(const std::filesystem::path& folder) {
  auto file = open_folder(folder);
  if (!file || ::fsync(file.get()) != 0)
    return errno_error(errno, fmt::format("fsync {}", folder.string()));
  return {};
}

} // namespace dsec
