#pragma once

#include "backends/init/reaper_protocol.hpp"
#include "tests/fuzz/input.hpp"

#include <kj/io.h>

#include <string_view>
#include <vector>

namespace dsec::fuzz {

/// PID 1 of a sandbox as dsec-init sees it. Claims of every request that the real one could carry
/// it out; what it tells may be anything, since an agent may have taken it over.
class played_reaper {
public:
  /// Its end of the socket, non-blocking, and an eventfd that becomes readable with its death.
  played_reaper(kj::AutoCloseFd socket, int death) : socket_{kj::mv(socket)}, death_{death} {}

  void read_requests();

  /// What it does next: tells an event, runs a command on, or dies.
  void play(input& in);

  void die();

private:
  void close();

  /// A command as it was asked for.
  struct asked {
    std::uint64_t exec = 0;
    kj::AutoCloseFd out, err, input, status;
  };

  void note_keep(std::string_view datagram, std::vector<kj::AutoCloseFd> files);
  void note_spawn(std::string_view datagram, std::vector<kj::AutoCloseFd> files);
  void tell(const void* bytes, std::size_t size);
  void run_on(asked& command, input& in);

  kj::AutoCloseFd socket_, births_;
  int death_;
  std::vector<asked> commands_;
};

} // namespace dsec::fuzz
