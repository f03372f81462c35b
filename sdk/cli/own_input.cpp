#include "sdk/cli/own_input.hpp"

#include "backends/container/byte_stream.hpp"
#include "sdk/cli/own_output.hpp"

#include <cerrno>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace dsec {

int input_as_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0)
    return -1;
  std::thread{[to = ends[1]] {
    char buffer[stream_piece_bytes];
    for (;;) {
      auto n = ::read(0, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        break;
      if (write_all(to, buffer, static_cast<std::size_t>(n)) != 0)
        break;
    }
    ::close(to);
  }}.detach();
  return ends[0];
}

} // namespace dsec
