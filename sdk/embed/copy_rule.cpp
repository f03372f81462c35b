#include "sdk/embed/copy_rule.hpp"

#include "backends/tree/pack.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

namespace dsec {

namespace {

/// Says that it wants a directory.
bool names_directory(const std::string& path) {
  return path.ends_with('/') || is_content(path);
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

/// Nothing: nothing is there.
result<std::optional<file_type>> type_at(const std::string& path, const look& there) {
  auto found = there(path);
  if (found)
    return std::optional{found->type};
  if (found.error().code == errc::not_found)
    return std::optional<file_type>{};
  return found.error();
}

error mismatch(const std::string& from, const std::string& at, bool from_is_directory) {
  return {errc::invalid_argument,
          fmt::format("copy {} to {}: {}", from, at,
                      from_is_directory ? "a directory cannot replace what is none"
                                        : "a file cannot replace a directory")};
}

} // namespace

bool is_content(const std::string& from) {
  return folder_and_name(from).second == ".";
}

result<landing>
land(const std::string& from, bool from_is_directory, const std::string& to, const look& there) {
  // Through a link to a directory, as cp does.
  auto through = there(join(to, "."));
  bool is_directory = through && through->type == file_type::directory;
  std::optional<file_type> at_to;
  if (!is_directory) {
    auto trimmed = to.substr(0, to.find_last_not_of('/') + 1);
    auto found = type_at(trimmed.empty() ? "/" : trimmed, there);
    if (!found)
      return found.error();
    at_to = *found;
  }
  if (!is_directory && at_to && (from_is_directory || names_directory(to)))
    return mismatch(from, to, true);
  if (is_content(from))
    return landing{to, ""};
  auto name = folder_and_name(from).second;
  if (!is_directory && !names_directory(to)) {
    auto [folder, last] = folder_and_name(to);
    return landing{folder, last};
  }
  auto inside = type_at(join(to, name), there);
  if (!inside)
    return inside.error();
  if (*inside && (**inside == file_type::directory) != from_is_directory)
    return mismatch(from, join(to, name), from_is_directory);
  return landing{to, name};
}

result<file_status> look_here(const std::string& path) {
  struct stat s {};

  if (::lstat(path.c_str(), &s) != 0)
    return errno_error(errno, path);
  file_status x;
  x.type = S_ISREG(s.st_mode)   ? file_type::regular
           : S_ISDIR(s.st_mode) ? file_type::directory
           : S_ISLNK(s.st_mode) ? file_type::symlink
                                : file_type::other;
  x.mode = s.st_mode & 07777;
  x.uid = s.st_uid;
  x.gid = s.st_gid;
  x.size = static_cast<std::uint64_t>(s.st_size);
  return x;
}

} // namespace dsec
