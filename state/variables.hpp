#pragma once

#include "state/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsec {

/// What execve takes as one string: MAX_ARG_STRLEN less the final NUL.
inline constexpr std::size_t argument_bytes_max = 131'071;

/// The bytes that these variables take as "NAME=value" with their NULs, or invalid_argument that
/// names the variable, its value and the limit. `owner` begins the message.
result<std::size_t> check_variables(std::string_view owner,
                                    const std::vector<std::pair<std::string, std::string>>& env);

} // namespace dsec
