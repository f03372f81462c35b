#pragma once

#include "backends/spawner/descriptor.hpp"
#include "backends/spawner/poller.hpp"
#include "state/error.hpp"

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace dsec::spawner {

/// Where an answer goes. The connection may be gone by then.
struct asker {
  std::uint64_t connection = 0;
  std::uint64_t sequence = 0;
};

/// Clients of the spawner's socket: root, and members of one group.
class connections {
public:
  explicit connections(poller& loop) : loop_{loop} {}

  /// Listens at `path`. not_found if there is no such group.
  result<void> listen(const std::string& path, const std::string& group);

  /// Accepts whoever waits; returns why somebody was turned away, if so.
  std::optional<std::string> accept();

  /// The next datagram of a connection; empty when there is none now. A connection that has ended,
  /// or sends more than a request may hold, is dropped.
  std::optional<std::string> receive(std::uint64_t connection);

  void send(std::uint64_t connection, std::string datagram);

  /// Sends what was held back while the client did not read.
  void flush(std::uint64_t connection);

  void drop(std::uint64_t connection);

  std::size_t count() const {
    return clients_.size();
  }

private:
  struct client {
    descriptor socket;
    std::deque<std::string> waiting;
  };

  bool may_enter(int socket) const;

  poller& loop_;
  descriptor listener_;
  std::optional<gid_t> group_;
  std::map<std::uint64_t, client> clients_;
  std::uint64_t next_ = 1;
};

} // namespace dsec::spawner
