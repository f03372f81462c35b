#pragma once

#include "backends/spawner/descriptor.hpp"
#include "state/error.hpp"

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec::spawner {

/// A child process of the spawner that does slow work on request, over a SOCK_SEQPACKET pair. It
/// ends when the spawner does.
struct worker {
  pid_t pid = -1;
  descriptor socket;
};

/// Forks a worker that keeps the descriptors of `keep` and runs `work` with its end of the socket
/// until it returns. The instance lock should be kept: the next spawner then waits for what is
/// still at work.
result<worker>
start_worker(const char* name, std::vector<int> keep, const std::function<void(int socket)>& work);

/// Closes every descriptor but these and the three standard ones.
void close_all_but(std::vector<int> keep);

/// Sends one datagram, with a descriptor beside it unless that is -1. Returns 0 or the errno value.
int send_datagram(int socket, std::string_view bytes, int descriptor_beside, int flags);

/// Receives one datagram of at most `bytes_max`. False at the end or on an error (errno EAGAIN:
/// none there yet).
bool receive_datagram(int socket, std::string& bytes, descriptor* beside, int flags,
                      std::size_t bytes_max = 4096);

} // namespace dsec::spawner
