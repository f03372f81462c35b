#pragma once

#include "backends/init/file_errands.hpp"
#include "state/error.hpp"

#include <kj/async.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec::init {

/// Who a command runs as, in the sandbox's own ids.
struct identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
};

/// Resolves "", "name", "uid", "name:group" or "uid:gid" in the contents of /etc/passwd and
/// /etc/group. A uid that has no entry runs with group 0. A group that is named replaces the user's
/// own and its supplementary ones. not_found names the user or group.
result<identity>
resolve_user(std::string_view user, std::string_view passwd, std::string_view group);

/// Who "", "root" and a uid with a gid are, whatever the files say; nothing for the others.
std::optional<identity> user_by_number(std::string_view user);

/// As `resolve_user`, with the sandbox's own files.
kj::Promise<result<identity>> resolve_user_inside(file_errands& files, std::string user);

} // namespace dsec::init
