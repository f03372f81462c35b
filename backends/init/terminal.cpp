#include "backends/init/terminal.hpp"

#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

namespace dsec::init {

namespace {

/// Debian's "tty", as devpts is mounted with.
constexpr gid_t terminal_group = 5;

kj::AutoCloseFd inner_of(int outer) {
  return kj::AutoCloseFd{::ioctl(outer, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)};
}

} // namespace

file_answer open_terminal(const file_request& request, int root) {
  file_answer answer;
  auto refuse = [&](int number) {
    answer.file = nullptr;
    answer.status.number = number;
    return kj::mv(answer);
  };
  open_how how{};
  how.flags = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  answer.file = kj::AutoCloseFd{
    static_cast<int>(::syscall(SYS_openat2, root, "/dev/pts/ptmx", &how, sizeof how))};

  struct stat s {};

  if (answer.file.get() < 0 || ::fstat(answer.file, &s) != 0)
    return refuse(errno);
  if (!S_ISCHR(s.st_mode) || s.st_rdev != makedev(5, 2))
    return refuse(ENOTTY);
  int locked = 0;
  if (::ioctl(answer.file, TIOCSPTLCK, &locked) != 0)
    return refuse(errno);
  const auto inner = inner_of(answer.file);
  if (inner.get() < 0 || ::fchown(inner, request.owner, terminal_group) != 0)
    return refuse(errno);
  return answer;
}

kj::Promise<result<kj::Own<terminal>>> terminal::open(file_errands& files, uid_t owner) {
  file_request request;
  request.task = file_task::open_terminal;
  request.owner = owner;
  return files.run(std::move(request))
    .then([](result<file_answer>&& done) -> result<kj::Own<terminal>> {
      if (!done)
        return done.error();
      if (done->status.number != 0)
        return error{errc::unavailable,
                     errno_error(done->status.number, "open a terminal of the sandbox").message};
      return kj::heap<terminal>(kj::mv(done->file));
    });
}

result<terminal_ends> terminal::ends() const {
  terminal_ends both{kj::AutoCloseFd{::fcntl(outer_, F_DUPFD_CLOEXEC, 3)}, inner_of(outer_)};
  if (both.outer.get() < 0 || both.inner.get() < 0)
    return errno_error(errno, "open the inner end of a terminal");
  return both;
}

result<void> terminal::resize(std::uint16_t rows, std::uint16_t columns) {
  winsize size{};
  size.ws_row = rows;
  size.ws_col = columns;
  if (::ioctl(outer_, TIOCSWINSZ, &size) != 0)
    return errno_error(errno, "set the size of a terminal");
  return {};
}

std::string terminal::end_of_input(bool line_begun) const {
  termios now{};
  if (::tcgetattr(outer_, &now) != 0)
    return "\x04";
  const auto key = static_cast<char>(now.c_cc[VEOF]);
  if (key == _POSIX_VDISABLE)
    return {};
  return std::string(line_begun && (now.c_lflag & ICANON) != 0 ? 2 : 1, key);
}

} // namespace dsec::init
