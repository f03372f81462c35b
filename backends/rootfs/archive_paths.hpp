#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dsec {

/// "a/b" for "./a//b/"; nothing for a name that is absolute or climbs. "" is the root itself.
std::optional<std::string> archive_path(std::string_view name);

/// True if following `target` from the folder of `name` climbs above the root on the way. An
/// absolute target does not: the sandbox reads it from its own root.
bool climbs_out(std::string_view name, std::string_view target);

/// Folder and last part: {"a", "b"} for "a/b", {"", "a"} for "a".
std::pair<std::string, std::string> split(const std::string& name);

} // namespace dsec
