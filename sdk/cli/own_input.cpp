#include "sdk/cli/own_input.hpp"

#include "backends/container/byte_stream.hpp"
#include "sdk/cli/own_output.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace dsec {

/// What the thread that reads leaves behind.
struct own_input::line {
  std::atomic<int> failed{0};
};

result<void> check_input() {
  struct stat what {};

  int number = 0;
  if (::fstat(STDIN_FILENO, &what) < 0)
    number = errno;
  else if (S_ISDIR(what.st_mode))
    number = EISDIR;
  else if ((::fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
    number = EBADF;
  return number == 0 ? result<void>{} : errno_error(number, "read standard input");
}

own_input::own_input(client& at)
  : line_{std::make_shared<line>()},
    buffer_{kj::heapArray<kj::byte>(stream_piece_bytes)} {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) {
    line_->failed = errno;
    return;
  }
  std::thread{[to = ends[1], line = line_] {
    char buffer[stream_piece_bytes];
    for (;;) {
      auto n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0 && errno == EAGAIN) {
        // Somebody who shares it wants it so.
        pollfd more{STDIN_FILENO, POLLIN, 0};
        ::poll(&more, 1, -1);
        continue;
      }
      if (n < 0)
        line->failed = errno;
      if (n <= 0 || write_all(to, buffer, static_cast<std::size_t>(n)) != 0)
        break;
    }
    ::close(to);
  }}.detach();
  from_ =
    at.io.lowLevelProvider->wrapInputFd(ends[0], kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP
                                                   | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
}

kj::Promise<std::string> own_input::read() {
  if (from_.get() == nullptr)
    return std::string{};
  return from_->tryRead(buffer_.begin(), 1, buffer_.size()).then([this](std::size_t n) {
    return std::string{reinterpret_cast<const char*>(buffer_.begin()), n};
  });
}

int own_input::failed() const {
  return line_->failed;
}

} // namespace dsec
