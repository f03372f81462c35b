#pragma once

#include <string>
#include <string_view>

namespace dsec {

/// `text` as it may stand in a line on a terminal: names and messages from inside a sandbox are the
/// agent's bytes, and a terminal obeys some. Control characters (C0, with line ends and tabs; DEL;
/// C1, also where they are valid UTF-8), bytes that are no UTF-8, and the backslash are \xNN for
/// each byte, with two lower-case hex digits; all else stays as it is. So no two texts look alike
/// for want of an escape.
std::string shown(std::string_view text);

} // namespace dsec
