#pragma once

#include <string>
#include <string_view>

namespace dsec {

/// `text` in quotes as it may stand in a message: its first 40 bytes, those that are not printable
/// ASCII as \xNN.
std::string printable(std::string_view text);

inline bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

} // namespace dsec
