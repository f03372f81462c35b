#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace dsec {

/// What an exception of KJ says to a person: its description without the marks of those who passed
/// it on ("remote exception: "), without the source text of what failed ("expected !closed_; ",
/// "n = ::writev(fd, pieces, count): ") and without the variables behind it ("; fd = 5"). Whatever
/// is left may be empty.
inline std::string exception_text(std::string_view description) {
  constexpr std::string_view passed_on = "remote exception: ";
  while (description.starts_with(passed_on))
    description.remove_prefix(passed_on.size());
  constexpr std::string_view separator = "; ";
  if (description.starts_with("expected ")) {
    auto end = description.find(separator);
    description.remove_prefix(end == std::string_view::npos ? description.size()
                                                            : end + separator.size());
  }
  // A call begins with one word, perhaps behind "n = ".
  auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
  };
  std::size_t begin = 0;
  if (auto equals = description.find(" = "); equals != std::string_view::npos) {
    begin = equals + 3;
    for (char c : description.substr(0, equals))
      if (!is_name(c))
        begin = 0;
  }
  auto bracket = begin;
  while (bracket < description.size() && is_name(description[bracket]))
    ++bracket;
  if (bracket > begin && bracket < description.size() && description[bracket] == '(')
    if (auto end = description.find("): ", bracket); end != std::string_view::npos)
      description.remove_prefix(end + 3);
  for (;;) {
    auto last = description.rfind(separator);
    auto variable = last == std::string_view::npos ? description : description.substr(last + 2);
    if (variable.find(" = ") == std::string_view::npos)
      break;
    description = description.substr(0, last == std::string_view::npos ? 0 : last);
  }
  while (description.ends_with('.') || description.ends_with(' '))
    description.remove_suffix(1);
  return std::string{description};
}

} // namespace dsec
