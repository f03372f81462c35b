#pragma once

#include "sdk/cli/client.hpp"

#include <kj/async-io.h>

#include <memory>
#include <string>

namespace dsec {

/// Why standard input cannot be read, as of a directory; "read standard input: Is a directory".
/// Reads nothing.
result<void> check_input();

/// Standard input, read by a thread of its own: a file cannot be waited for, and a terminal must
/// not be made non-blocking for everybody who shares it. Loop only.
class own_input {
public:
  explicit own_input(client& at);

  /// What comes next; nothing at its end, or when it cannot be read. One at a time.
  kj::Promise<std::string> read();

  /// Why it cannot be read, an errno value; 0: it can, or is at its end.
  int failed() const;

private:
  struct line;

  std::shared_ptr<line> line_;
  kj::Own<kj::AsyncInputStream> from_;
  kj::Array<kj::byte> buffer_;
};

} // namespace dsec
