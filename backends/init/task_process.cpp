#include "backends/init/task_process.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <unistd.h>
#include <utility>

namespace dsec::init {

void task_graves::take(pid_t pid) {
  kj::AutoCloseFd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (process.get() < 0)
    return;
  auto observer =
    kj::heap<kj::UnixEventPort::FdObserver>(port_, process.get(),
                                            kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto ended = observer->whenBecomesReadable();
  // The observer goes before the descriptor that it observes.
  waiting_.add(ended.then([pid] { ::waitpid(pid, nullptr, WNOHANG); })
                 .attach(kj::mv(observer))
                 .attach(kj::mv(process)));
}

result<kj::Own<task_process>> task_process::start(kj::UnixEventPort& port, task_graves& graves,
                                                  const std::function<void(int socket)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error(errno, "file operation: make its socket");
  kj::AutoCloseFd ours{ends[0]}, theirs{ends[1]};
  const pid_t pid = ::fork();
  if (pid < 0)
    return errno_error(errno, "file operation: fork");
  if (pid == 0) {
    // Else it would not see its own socket close.
    ours = nullptr;
    work(theirs);
    ::_exit(1);
  }
  return kj::heap<task_process>(port, graves, kj::mv(ours), pid);
}

task_process::task_process(kj::UnixEventPort& port, task_graves& graves, kj::AutoCloseFd socket,
                           pid_t pid)
  : socket_{kj::mv(socket)},
    observer_{port, socket_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ},
    graves_{graves},
    pid_{pid} {}

void task_process::kill() {
  if (pid_ > 0 && !ending_)
    ::kill(pid_, SIGKILL);
}

task_process::~task_process() noexcept {
  if (!spared_)
    kill();
  // Of a spared one, this is the word to end.
  ::shutdown(socket_, SHUT_RDWR);
  if (pid_ > 0 && ::waitpid(pid_, nullptr, ending_ ? 0 : WNOHANG) == 0)
    graves_.take(pid_);
}

error task_process::bury() {
  int status = 0;
  // Its socket is closed, so it is on its way out.
  const bool known = ::waitpid(std::exchange(pid_, -1), &status, 0) > 0;
  auto how = std::string{"in a way that is not known"};
  if (known && WIFSIGNALED(status))
    how = "by signal " + std::to_string(WTERMSIG(status));
  else if (known)
    how = "with code " + std::to_string(WEXITSTATUS(status));
  return {errc::unavailable, "its process ended " + how + " and without an answer"};
}

kj::Promise<result<file_answer>> task_process::answer() {
  file_answer got;
  iovec part{&got.status, sizeof got.status};
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return observer_.whenBecomesReadable().then([this] { return answer(); });
  if (n != static_cast<ssize_t>(sizeof got.status))
    return result<file_answer>{bury()};
  if (auto* header = CMSG_FIRSTHDR(&message);
      header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    got.file = kj::AutoCloseFd{fd};
  }
  return result<file_answer>{std::move(got)};
}

} // namespace dsec::init
