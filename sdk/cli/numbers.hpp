#pragma once

#include "state/error.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

/// Numbers as they are typed. CLI11 alone would take "-1" for the largest number that there is and
/// "nan" for seconds. Each refusal names the option, what was given and what may be.

namespace dsec {

/// A step number, as the store keeps it.
inline constexpr std::uint64_t step_max = (1ull << 63) - 1;

/// Ten years: far above any command, far below what milliseconds overflow at.
inline constexpr double seconds_max = 10 * 365 * 86'400.;

/// Decimal digits alone. invalid_argument otherwise, or if it is not from `least` to `most`.
result<std::uint64_t>
parse_whole(std::string_view name, std::string_view text, std::uint64_t least, std::uint64_t most);

/// In thousandths, rounded, as 1500 for "1.5". invalid_argument if it is no number from `least` to
/// `most`; 0 is one if `or_none`.
result<std::int64_t> parse_thousandths(std::string_view name, std::string_view text, double least,
                                       double most, bool or_none = false);

/// Seconds, as milliseconds: 0, which means none, or from one millisecond to `most`.
result<std::chrono::milliseconds>
parse_seconds(std::string_view name, std::string_view text, double most = seconds_max);

/// What is wrong with the command line, to whoever parses it.
[[noreturn]] void refuse_option(const error& why);

/// An option, or a positional argument, that is such a number.
template <class T>
CLI::Option* add_whole(CLI::App& to, const std::string& name, T& value, const std::string& about,
                       std::uint64_t most, std::uint64_t least = 0) {
  auto take = [&value, name, least, most](const std::string& text) {
    auto number = parse_whole(name, text, least, most);
    if (!number)
      refuse_option(number.error());
    if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(*number);
    else
      value = static_cast<typename T::value_type>(*number);
  };
  return to.add_option_function<std::string>(name, take, about)->type_name("UINT");
}

CLI::Option* add_seconds(CLI::App& to, const std::string& name, std::chrono::milliseconds& value,
                         const std::string& about, double most = seconds_max);

} // namespace dsec
