#include "state/variables.hpp"

#include "state/printable.hpp"

#include <fmt/format.h>

namespace dsec {

result<std::size_t> check_variables(std::string_view owner,
                                    const std::vector<std::pair<std::string, std::string>>& env) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < env.size(); ++i) {
    const auto& [name, value] = env[i];
    auto invalid = [&](std::string_view what) {
      return error{errc::invalid_argument, fmt::format("{}: env[{}] {}", owner, i, what)};
    };
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name))
      return invalid(
        fmt::format("has the name {}; not empty, without '=' and NUL", printable(name)));
    if (has_nul(value))
      return invalid(fmt::format("({}) is {}; without NUL", printable(name), printable(value)));
    auto bytes = name.size() + 1 + value.size();
    if (bytes > argument_bytes_max)
      return invalid(
        fmt::format("({}) has {} bytes; at most {}", printable(name), bytes, argument_bytes_max));
    total += bytes + 1;
  }
  return total;
}

} // namespace dsec
