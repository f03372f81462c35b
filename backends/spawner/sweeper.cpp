#include "backends/spawner/sweeper.hpp"

#include "backends/kill_point.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace dsec::spawner {

namespace {

result<void> remove_everything(const machine& on, const std::string& id) {
  if (auto ok = on.groups.remove(id); !ok)
    return ok;
  if (auto ok = on.disk.remove(id); !ok)
    return ok;
  // The lock goes last: as long as it is there, a spawner that starts knows what is left and whose
  // slot.
  for (auto* ending : {".sock", ".lock"}) {
    kill_point(crash_role::spawner);
    if (::unlinkat(on.run_dir.get(), (id + ending).c_str(), 0) < 0 && errno != ENOENT)
      return errno_error(errno, "remove " + on.where.run(id + ending));
    kill_point(crash_role::spawner);
  }
  return {};
}

void sweep(const machine& on, int socket) {
  // A group may count a dead process for a moment longer than its last event says.
  constexpr int attempts = 200;
  std::string id;
  while (receive_datagram(socket, id, nullptr, 0)) {
    auto done = remove_everything(on, id);
    for (int i = 1; !done && i < attempts; ++i) {
      timespec pause{0, i < 20 ? 500'000 : 10'000'000};
      ::nanosleep(&pause, nullptr);
      done = remove_everything(on, id);
    }
    auto answer = id + '\n' + (done ? "" : done.error().message);
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

void sweeper::push(const std::string& id) {
  waiting_.push_back(id);
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
  swept done{answer.substr(0, end), answer.substr(end + 1)};
  given_.erase(done.id);
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
