#pragma once

#include "schemas/spawner.capnp.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

namespace dsec::test {

/// What listens where a spawner would, in a directory of its own. It says hello and nothing else.
class fake_spawner {
public:
  struct hello {
    std::string version;
    std::uint32_t protocol = 1;
    std::uint32_t sandboxes = 0;
  };

  /// Nothing: it never answers.
  explicit fake_spawner(std::optional<hello> says) : says_{std::move(says)} {
    std::array<char, 32> name{"/tmp/dsec-fake-XXXXXX"};
    if (!::mkdtemp(name.data()))
      throw std::runtime_error{"mkdtemp"};
    run_dir = name.data();
    listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    auto path = (run_dir / "spawner.sock").string();
    std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at) < 0
        || ::listen(listener_, 8) < 0)
      throw std::runtime_error{"listen on " + path};
    if (says_)
      thread_ = std::thread{[this] {
        serve();
      }};
  }

  ~fake_spawner() {
    ::shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable())
      thread_.join();
    ::close(listener_);
    std::filesystem::remove_all(run_dir);
  }

  fake_spawner(const fake_spawner&) = delete;
  fake_spawner& operator=(const fake_spawner&) = delete;

  std::filesystem::path run_dir;

private:
  void serve() {
    for (;;) {
      int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0)
        return;
      while (answer(peer)) {
      }
      ::close(peer);
    }
  }

  bool answer(int peer) {
    std::array<capnp::word, 512> packet;
    auto n = ::recv(peer, packet.data(), sizeof packet, 0);
    if (n <= 0)
      return false;
    capnp::FlatArrayMessageReader request{
      kj::arrayPtr(packet.data(), static_cast<std::size_t>(n) / sizeof(capnp::word))};
    capnp::MallocMessageBuilder message;
    auto reply = message.initRoot<wire::Reply>();
    reply.setSequence(request.getRoot<wire::Request>().getSequence());
    auto facts = reply.initHello();
    facts.setVersion(says_->version.c_str());
    facts.setPid(4711);
    facts.setProtocol(says_->protocol);
    facts.setSandboxes(says_->sandboxes);
    auto words = capnp::messageToFlatArray(message);
    return ::send(peer, words.begin(), words.size() * sizeof(capnp::word), MSG_NOSIGNAL) > 0;
  }

  std::optional<hello> says_;
  int listener_ = -1;
  std::thread thread_;
};

} // namespace dsec::test
