#include "backends/init/gate.hpp"
#include "backends/init/launch.hpp"
#include "backends/init/lockdown.hpp"
#include "backends/init/reaper_protocol.hpp"
#include "backends/init/sandbox.hpp"
#include "backends/init/usage.hpp"

#include <kj/async-io.h>
#include <sys/socket.h>

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr int ready_patience_ms = 10'000;
/// Turns of the event loop after which it looks for what has arrived, however much is to be done.
constexpr unsigned busy_turns = 64;

/// PID 1 says so once it has entered its loop: its root is the sandbox's from then on.
result<void> wait_for_reaper(int socket) {
  pollfd wanted{socket, POLLIN, 0};
  if (::poll(&wanted, 1, ready_patience_ms) <= 0)
    return error{errc::unavailable, "PID 1 of the sandbox is not ready after 10 s"};
  reaper::event event;
  if (::recv(socket, &event, sizeof event, 0) != static_cast<ssize_t>(sizeof event)
      || event.what != reaper::verb::ready)
    return error{errc::unavailable, "PID 1 of the sandbox ended before it was ready"};
  return {};
}

result<privileged_files> open_privileged(const launch& given) {
  const auto process = "/proc/" + std::to_string(given.reaper_pid);
  auto open_file = [](const std::string& path, int flags) {
    return kj::AutoCloseFd{::open(path.c_str(), flags | O_CLOEXEC)};
  };
  privileged_files files;
  files.user_namespace = open_file(process + "/ns/user", O_RDONLY);
  files.mount_namespace = open_file(process + "/ns/mnt", O_RDONLY);
  files.root = open_file(process + "/root", O_PATH | O_DIRECTORY);
  files.null_device = open_file("/dev/null", O_RDWR);
  files.disk_account = open_disk_account(given.scratch_dir);
  files.kernel_log = oom_log::open();
  if (files.user_namespace.get() < 0 || files.mount_namespace.get() < 0 || files.root.get() < 0
      || files.null_device.get() < 0)
    return errno_error(errno, "open the namespaces of PID 1");
  return files;
}

} // namespace

void supervise(launch given, const assigning& wait_for_assignment) {
  auto complete = wait_for_reaper(given.reaper_socket);
  auto files = open_privileged(given);
  if (complete && !files)
    complete = files.error();
  if (complete)
    complete = lock_down(given, *files);
  try {
    if (!complete) {
      wait_for_assignment(complete);
      ::_exit(1);
    }
    auto io = kj::setupAsyncIo();
    // Commands that write without a pause must not keep everything else from being heard.
    io.waitScope.setBusyPollInterval(busy_turns);
    kj::AutoCloseFd listener{given.listener};
    const auto for_assigning = std::move(given.for_assigning);
    sandbox served{std::move(given), kj::mv(*files), io};
    gate entrance{served, kj::mv(listener)};
    served.become(wait_for_assignment(served.complete()));
    for (int fd : for_assigning)
      ::close(fd);
    auto accepting = entrance.run().eagerlyEvaluate([](kj::Exception&&) {});
    served.run().wait(io.waitScope);
    // At once, nothing is taken apart: a thread of a reclaim may still be at work on it.
    ::_exit(0);
  } catch (const kj::Exception& e) {
    const std::string text = std::string("dsec-init: ") + e.getDescription().cStr() + "\n";
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(1);
  }
}

} // namespace dsec::init
