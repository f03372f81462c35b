#include "backends/spawner/sweeper.hpp"

#include "backends/kill_point.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <vector>

namespace dsec::spawner {

namespace {

/// "<name> <slot>", the slot "-" if there is none.
std::string pack(const remains& of) {
  return of.name + ' ' + (of.slot ? std::to_string(*of.slot) : "-");
}

remains unpack(const std::string& text) {
  auto space = text.find(' ');
  auto slot = text.substr(space + 1);
  remains of{text.substr(0, space), std::nullopt};
  if (slot != "-")
    of.slot = static_cast<std::uint32_t>(std::stoul(slot));
  return of;
}

result<void> remove_everything(const machine& on, const remains& of) {
  if (of.slot) {
    if (auto ok = on.groups.remove(*of.slot); !ok)
      return ok;
    if (auto ok = on.disk.remove(*of.slot); !ok)
      return ok;
  }
  // The lock goes last: as long as it is there, a spawner that starts knows what is left and whose
  // slot. One that died early still bears the slot's name.
  auto slot = of.slot ? slot_name(*of.slot) : of.name;
  std::vector<std::string> files{of.name + ".sock", slot + ".sock", of.name + ".lock",
                                 slot + ".lock"};
  for (auto& file : files) {
    kill_point(crash_role::spawner);
    if (::unlinkat(on.run_dir.get(), file.c_str(), 0) < 0 && errno != ENOENT)
      return errno_error(errno, "remove " + on.where.run(file));
    kill_point(crash_role::spawner);
  }
  return {};
}

void sweep(const machine& on, int socket) {
  // A group may count a dead process for a moment longer than its last event says.
  constexpr int attempts = 200;
  std::string text;
  while (receive_datagram(socket, text, nullptr, 0)) {
    auto of = unpack(text);
    auto done = remove_everything(on, of);
    for (int i = 1; !done && i < attempts; ++i) {
      timespec pause{0, i < 20 ? 500'000 : 10'000'000};
      ::nanosleep(&pause, nullptr);
      done = remove_everything(on, of);
    }
    auto answer = text + '\n' + (done ? "" : done.error().message);
    if (send_datagram(socket, answer, -1, 0) != 0)
      return;
  }
}

} // namespace

result<void> sweeper::start() {
  auto started =
    start_worker("dsec-sweeper", {on_.lock.get(), on_.run_dir.get(), on_.disk.directory()},
                 [this](int socket) { sweep(on_, socket); });
  if (!started)
    return started.error();
  worker_ = *std::move(started);
  waiting_.insert(waiting_.begin(), given_.begin(), given_.end());
  given_.clear();
  feed();
  return {};
}

void sweeper::push(const remains& of) {
  waiting_.push_back(pack(of));
  feed();
}

void sweeper::feed() {
  constexpr std::size_t given_max = 16;
  while (worker_.socket && !waiting_.empty() && given_.size() < given_max) {
    if (send_datagram(worker_.socket.get(), waiting_.front(), -1, MSG_DONTWAIT) != 0)
      return;
    given_.insert(waiting_.front());
    waiting_.pop_front();
  }
}

std::optional<swept> sweeper::receive(bool& alive) {
  std::string answer;
  if (!receive_datagram(worker_.socket.get(), answer, nullptr, MSG_DONTWAIT)) {
    alive = errno == EAGAIN;
    if (!alive)
      worker_.socket.reset();
    return std::nullopt;
  }
  auto end = answer.find('\n');
  auto text = answer.substr(0, end);
  given_.erase(text);
  swept done{unpack(text).name, answer.substr(end + 1)};
  feed();
  return done;
}

void sweeper::stop() {
  worker_.socket.reset();
  if (worker_.pid > 0) {
    ::kill(worker_.pid, SIGKILL);
    ::waitpid(worker_.pid, nullptr, 0);
    worker_.pid = -1;
  }
}

} // namespace dsec::spawner
