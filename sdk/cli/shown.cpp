#include "sdk/cli/shown.hpp"

#include <cstddef>

namespace dsec {

namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Bytes of the character that `text` begins with, and that may be shown; 0 if there is none.
std::size_t plain_character(std::string_view text) {
  auto first = byte_at(text, 0);
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f && first != '\\' ? 1 : 0;
  // 0xc0, 0xc1 and what is above 0xf4 begin nothing; the bounds of the second byte leave out the
  // overlong, the surrogates, and what is beyond U+10FFFF. 0xc2 0x80 to 0x9f are C1.
  std::size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (bytes == 0 || text.size() < bytes)
    return 0;
  unsigned least = 0x80, most = 0xbf;
  if (first == 0xc2 || first == 0xe0)
    least = 0xa0;
  else if (first == 0xf0)
    least = 0x90;
  else if (first == 0xed)
    most = 0x9f;
  else if (first == 0xf4)
    most = 0x8f;
  auto second = byte_at(text, 1);
  if (second < least || second > most)
    return 0;
  for (std::size_t i = 2; i < bytes; ++i)
    if ((byte_at(text, i) & 0xc0) != 0x80)
      return 0;
  return bytes;
}

} // namespace

std::string shown(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string all;
  all.reserve(text.size());
  while (!text.empty()) {
    auto bytes = plain_character(text);
    if (bytes == 0) {
      auto byte = byte_at(text, 0);
      all += {'\\', 'x', digits[byte >> 4], digits[byte & 0xf]};
      bytes = 1;
    } else {
      all += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return all;
}

} // namespace dsec
