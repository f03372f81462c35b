#include "state/process.hpp"

#include "state/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec {

namespace {

bool may_be_in_name(char x) {
  return (x >= '0' && x <= '9') || (x >= 'A' && x <= 'Z') || (x >= 'a' && x <= 'z') || x == '.'
         || x == '_' || x == '-';
}

} // namespace

std::string_view to_string(attach_from x) {
  switch (x) {
  case attach_from::start:
    return "start";
  case attach_from::tail:
    return "tail";
  }
  return "unknown";
}

result<void> validate(const process_spec& x) {
  if (x.name.size() > process_name_bytes_max || !std::ranges::all_of(x.name, may_be_in_name))
    return error{errc::invalid_argument,
                 fmt::format("process: name is {}; at most {} bytes of [0-9A-Za-z._-]",
                             printable(x.name), process_name_bytes_max)};
  // Whoever names a process may give its name or its id.
  if (!x.name.empty() && std::ranges::all_of(x.name, [](char c) { return c >= '0' && c <= '9'; }))
    return error{errc::invalid_argument,
                 fmt::format("process: name is {}; not of digits alone, as ids are",
                             printable(x.name))};
  if (x.command.step)
    return error{errc::invalid_argument,
                 fmt::format("process: step is {}; a recorded step is an exec, not a process",
                             *x.command.step)};
  if (x.terminal && (x.terminal->rows == 0 || x.terminal->columns == 0))
    return error{errc::invalid_argument,
                 fmt::format("process: terminal is {} rows x {} columns; at least 1 x 1",
                             x.terminal->rows, x.terminal->columns)};
  return validate(x.command);
}

} // namespace dsec
