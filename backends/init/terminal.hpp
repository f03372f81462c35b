#pragma once

#include "backends/init/file_errands.hpp"
#include "state/error.hpp"

#include <kj/async.h>
#include <kj/io.h>

#include <cstdint>
#include <string>

namespace dsec::init {

/// What a command is given of a terminal.
struct terminal_ends {
  kj::AutoCloseFd outer; ///< Ours, non-blocking: what is typed goes in, what is shown comes out.
  kj::AutoCloseFd inner; ///< The command's: all its standard streams.
};

/// Our side of a pseudo-terminal of the sandbox's own devpts, so that processes inside find it
/// below /dev/pts.
class terminal {
public:
  /// `owner` is the user inside to whom its device belongs. unavailable if the sandbox has none
  /// left.
  static kj::Promise<result<kj::Own<terminal>>> open(file_errands& files, uid_t owner);

  explicit terminal(kj::AutoCloseFd outer) : outer_{kj::mv(outer)} {}

  result<terminal_ends> ends() const;

  /// Its foreground process group gets SIGWINCH if that changes anything.
  result<void> resize(std::uint16_t rows, std::uint16_t columns);

  /// What has to be typed for a reader to see the end of its input. Only the start of a line is a
  /// place for it: elsewhere it hands out the line so far first.
  std::string end_of_input(bool line_begun) const;

private:
  kj::AutoCloseFd outer_;
};

/// The file task's part of `open`, as root of the sandbox. Allocates nothing.
file_answer open_terminal(const file_request& request, int root);

} // namespace dsec::init
