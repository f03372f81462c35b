#include "backends/init/file_errands.hpp"

#include "backends/init/file_task.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace dsec::init {

namespace {

/// One running task. Its process ends with it: a caller that went away does not wait for a stalled
/// store.
struct errand {
  errand(kj::UnixEventPort& port, kj::AutoCloseFd ours, pid_t child, std::vector<pid_t>& list)
    : socket{kj::mv(ours)},
      observer{port, socket.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ},
      pid{child},
      abandoned{list} {}

  ~errand() {
    if (!answered)
      ::kill(pid, SIGKILL);
    if (::waitpid(pid, nullptr, answered ? 0 : WNOHANG) == 0)
      abandoned.push_back(pid);
  }

  kj::Promise<result<file_answer>> answer() {
    file_answer got;
    iovec part{&got.status, sizeof got.status};
    alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return observer.whenBecomesReadable().then([this] { return answer(); });
    answered = true;
    if (n != static_cast<ssize_t>(sizeof got.status))
      return result<file_answer>{
        error{errc::unavailable, "file operation: its process ended without an answer"}};
    if (auto* header = CMSG_FIRSTHDR(&message);
        header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      got.file = kj::AutoCloseFd{fd};
    }
    return result<file_answer>{std::move(got)};
  }

  kj::AutoCloseFd socket;
  kj::UnixEventPort::FdObserver observer;
  pid_t pid;
  std::vector<pid_t>& abandoned;
  bool answered = false;
};

} // namespace

file_errands::file_errands(kj::UnixEventPort& port, kj::AutoCloseFd user_namespace,
                           kj::AutoCloseFd mount_namespace)
  : port_{port},
    user_namespace_{kj::mv(user_namespace)},
    mount_namespace_{kj::mv(mount_namespace)} {}

void file_errands::collect_abandoned() {
  std::erase_if(abandoned_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

kj::Promise<result<file_answer>> file_errands::run(file_request request) {
  collect_abandoned();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return result<file_answer>{errno_error(errno, "file operation: make its socket")};
  kj::AutoCloseFd ours{ends[0]}, theirs{ends[1]};
  kj::AutoCloseFd memory;
  if (request.task == file_task::list)
    memory = kj::AutoCloseFd{::memfd_create("dsec-list", MFD_CLOEXEC)};
  const pid_t pid = ::fork();
  if (pid < 0)
    return result<file_answer>{errno_error(errno, "file operation: fork")};
  if (pid == 0)
    serve_file_task(request, user_namespace_, mount_namespace_, memory, theirs);
  theirs = nullptr;
  auto run = kj::heap<errand>(port_, kj::mv(ours), pid, abandoned_);
  auto promise = run->answer();
  return promise.attach(kj::mv(run));
}

} // namespace dsec::init
