#include "sdk/cli/numbers.hpp"

#include "state/printable.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace dsec {

namespace {

/// False if that is not all of `text`.
template <class T>
bool read_number(std::string_view text, T& to) {
  const auto* end = text.data() + text.size();
  auto [read, failed] = std::from_chars(text.data(), end, to);
  return failed == std::errc{} && read == end;
}

error out_of_range(std::string_view name, std::string_view text, const std::string& limits) {
  return {errc::invalid_argument, fmt::format("{} is {}; {}", name, printable(text), limits)};
}

} // namespace

result<std::uint64_t>
parse_whole(std::string_view name, std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  if (!read_number(text, number) || number < least || number > most)
    return out_of_range(name, text, fmt::format("a whole number from {} to {}", least, most));
  return number;
}

result<std::int64_t> parse_thousandths(std::string_view name, std::string_view text, double least,
                                       double most, bool or_none) {
  double amount = 0;
  // Written so that what is not a number fails too.
  const bool known =
    read_number(text, amount) && ((amount >= least && amount <= most) || (or_none && amount == 0));
  if (!known)
    return out_of_range(
      name, text, fmt::format("{}a number from {} to {}", or_none ? "0, or " : "", least, most));
  return std::llround(amount * 1000);
}

result<std::chrono::milliseconds>
parse_seconds(std::string_view name, std::string_view text, double most) {
  auto thousandths = parse_thousandths(name, text, 0.001, most, true);
  if (!thousandths)
    return error{thousandths.error().code, thousandths.error().message + " of seconds"};
  return std::chrono::milliseconds{*thousandths};
}

void refuse_option(const error& why) {
  throw CLI::ValidationError{why.message, CLI::ExitCodes::ValidationError};
}

CLI::Option* add_seconds(CLI::App& to, const std::string& name, std::chrono::milliseconds& value,
                         const std::string& about, double most) {
  auto take = [&value, name, most](const std::string& text) {
    auto time = parse_seconds(name, text, most);
    if (!time)
      refuse_option(time.error());
    value = *time;
  };
  return to.add_option_function<std::string>(name, take, about)->type_name("SECONDS");
}

} // namespace dsec
