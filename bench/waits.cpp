#include "bench/waits.hpp"

#include <sys/inotify.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>
#include <poll.h>
#include <thread>

namespace dsec::bench {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t changes =
  IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR;

/// poll(2) with a deadline; false: it has passed.
bool poll_until(pollfd* watched, nfds_t count, deadline until) {
  for (;;) {
    const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const auto wait_ms = std::clamp<std::int64_t>(left.count(), 0, 3'600'000);
    const int ready = ::poll(watched, count, static_cast<int>(wait_ms));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      checked(ready, "poll");
    if (left <= 0ms)
      return false;
  }
}

/// The first bytes of an open file; empty if they cannot be read.
std::string read_again(const fd& file) {
  std::string text(256, '\0');
  const auto got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

bool has_line(std::string_view text, std::string_view wanted) {
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (text.substr(at, end - at) == wanted)
      return true;
    at = end + 1;
  }
  return false;
}

} // namespace

deadline within(std::chrono::milliseconds patience) {
  return std::chrono::steady_clock::now() + patience;
}

bool wait_readable(int descriptor, deadline until) {
  pollfd watched{descriptor, POLLIN, 0};
  return poll_until(&watched, 1, until);
}

fd watch_process(pid_t pid) {
  return fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
}

bool wait_for_end(pid_t pid, deadline until) {
  const auto process = watch_process(pid);
  return process.get() < 0 || wait_readable(process.get(), until);
}

file_watch::file_watch(const std::filesystem::path& file)
  : name_{file.filename().string()},
    queue_{checked(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK), "watch files")} {
  const auto folder = file.parent_path();
  checked(::inotify_add_watch(queue_.get(), folder.c_str(), changes), "watch " + folder.string());
}

bool file_watch::wait(deadline until, int other) {
  for (;;) {
    pollfd watched[] = {{queue_.get(), POLLIN, 0}, {other, POLLIN, 0}};
    if (!poll_until(watched, 2, until))
      return false;
    if (watched[1].revents != 0 || told_of_file())
      return true;
  }
}

/// Takes everything out of the queue.
bool file_watch::told_of_file() {
  alignas(inotify_event) char bytes[4096];
  bool told = false;
  for (ssize_t got; (got = ::read(queue_.get(), bytes, sizeof bytes)) > 0;)
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(bytes + at);
      // What did not fit into the queue may have been about the file.
      told = told || (event->mask & IN_Q_OVERFLOW) != 0
             || (event->len > 0 && std::string_view{event->name} == name_);
      at += static_cast<ssize_t>(sizeof *event + event->len);
    }
  return told;
}

bool wait_for_file(const std::filesystem::path& file, deadline until) {
  file_watch watch{file};
  while (!std::filesystem::exists(file))
    if (!watch.wait(until))
      return false;
  return true;
}

bool wait_for_group(const std::string& folder, std::string_view line, deadline until) {
  const fd events{::open((folder + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)};
  if (events.get() < 0)
    return false;
  for (;;) {
    const auto text = read_again(events);
    if (has_line(text, line))
      return true;
    pollfd watched{events.get(), POLLPRI, 0};
    if (text.empty() || !poll_until(&watched, 1, until))
      return false;
  }
}

bool ask_until(deadline until, std::chrono::milliseconds pause,
               const std::function<bool()>& holds) {
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until)
      return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

} // namespace dsec::bench
