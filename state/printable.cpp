#include "state/printable.hpp"

#include <fmt/format.h>

namespace dsec {

std::string printable(std::string_view text) {
  constexpr std::size_t shown_bytes = 40;
  std::string out = "\"";
  for (unsigned char c : text.substr(0, shown_bytes)) {
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  return out + (text.size() > shown_bytes ? "...\"" : "\"");
}

} // namespace dsec
