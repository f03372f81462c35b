#pragma once

#include "backends/container/io_loop.hpp"
#include "state/error.hpp"

#include <filesystem>
#include <memory>

namespace dsec {

class runtime;

/// Serves one runtime over a Unix socket (schemas/dsec.capnp), in the thread of `loop`. At most 64
/// connections; the next ones wait. Only the process's own user and root are served.
class front {
public:
  /// `target` and `loop` outlive it. Replaces a socket file that a dead owner left.
  static result<std::unique_ptr<front>>
  open(io_loop& loop, runtime& target, const std::filesystem::path& socket);

  /// Closes every connection, as if the clients had gone, and removes the socket file. Not from the
  /// loop's thread.
  ~front();

  front(const front&) = delete;
  front& operator=(const front&) = delete;

private:
  struct inside;
  front(io_loop& loop, std::filesystem::path socket);
  io_loop& loop_;
  std::filesystem::path socket_;
  std::unique_ptr<inside> inside_;
};

} // namespace dsec
