#pragma once

#include "state/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace dsec {

/// Writes all of it to standard output, now. Whatever a command prints goes through here or
/// `own_output`, so that none ends well whose answer nobody got: "write standard output: ...".
result<void> print(std::string_view text);

template <class First, class... Args>
result<void> print(fmt::format_string<First, Args...> format, First&& first, Args&&... args) {
  return print(
    std::string_view{fmt::format(format, std::forward<First>(first), std::forward<Args>(args)...)});
}

/// The same of one JSON text and the end of its line. A string that is no UTF-8 (names and words
/// from inside a sandbox are bytes) stands as `shown` has it, and its object names the members that
/// are so spelled in one of its own, "escaped".
result<void> print_json(nlohmann::json x, int indent = -1);
result<void> print_json(nlohmann::ordered_json x);

/// The text of that without the end of the line.
std::string json_text(nlohmann::json x, int indent = -1);

/// A line on standard error: "dsec: " and `message`. Nobody is left to hear that it cannot be
/// written.
void complain(std::string_view message);

template <class First, class... Args>
void complain(fmt::format_string<First, Args...> format, First&& first, Args&&... args) {
  complain(
    std::string_view{fmt::format(format, std::forward<First>(first), std::forward<Args>(args)...)});
}

/// As `shown`, but for backslashes, which stay: what messages quote has its escapes already.
std::string shown_message(std::string_view message);

} // namespace dsec
