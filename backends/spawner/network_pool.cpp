#include "backends/spawner/network_pool.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sched.h>

namespace dsec::spawner {

namespace {

/// One byte in, one namespace out. A failure is an answer without a descriptor.
void make_networks(int socket) {
  std::string request;
  while (receive_datagram(socket, request, nullptr, 0)) {
    descriptor network;
    int failed = enter_new_network();
    if (failed == 0)
      network.reset(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    if (send_datagram(socket, "n", network.get(), 0) != 0)
      return;
  }
}

} // namespace

int enter_new_network() {
  if (::unshare(CLONE_NEWNET) < 0)
    return errno;
  descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  if (!socket || ::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) < 0)
    return errno;
  descriptor ports{::open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC)};
  if (!ports || ::write(ports.get(), "0", 1) != 1)
    return errno;
  return 0;
}

network_pool::network_pool(std::size_t size) : size_{std::min(size, size_max)}, target_{size_} {}

result<void> network_pool::start(int lock) {
  auto started = start_worker("dsec-networks", {lock}, make_networks);
  if (!started)
    return started.error();
  worker_ = *std::move(started);
  asked_ = 0;
  refill();
  return {};
}

void network_pool::refill() {
  // Few at a time: the worker's socket must never fill, and a create in between should not wait for
  // many.
  constexpr std::size_t asked_max = 16;
  while (worker_.socket && asked_ < asked_max && ready_.size() + asked_ < target_) {
    if (send_datagram(worker_.socket.get(), "n", -1, MSG_DONTWAIT) != 0)
      return;
    ++asked_;
  }
}

bool network_pool::receive() {
  std::string answer;
  descriptor network;
  while (receive_datagram(worker_.socket.get(), answer, &network, MSG_DONTWAIT)) {
    --asked_;
    if (network)
      ready_.push_back(std::move(network));
    else
      target_ = std::min(target_, ready_.size()); // The kernel has no more to give for now.
  }
  bool alive = errno == EAGAIN;
  if (!alive)
    worker_.socket.reset();
  if (full())
    target_ = size_;
  refill();
  return alive;
}

descriptor network_pool::take() {
  descriptor network;
  if (!ready_.empty()) {
    network = std::move(ready_.front());
    ready_.pop_front();
  }
  refill();
  return network;
}

void network_pool::raise(std::size_t count) {
  target_ = std::max(target_, std::min(count, size_max));
  refill();
}

void network_pool::stop() {
  ready_.clear();
  worker_.socket.reset();
  if (worker_.pid > 0) {
    ::kill(worker_.pid, SIGKILL);
    ::waitpid(worker_.pid, nullptr, 0);
    worker_.pid = -1;
  }
}

} // namespace dsec::spawner
