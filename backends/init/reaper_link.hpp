#pragma once

#include "backends/init/exec_groups.hpp"
#include "backends/init/reaper_protocol.hpp"
#include "state/error.hpp"

#include <kj/async-unix.h>
#include <kj/io.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

namespace dsec::init {

/// dsec-init's end of the socket to PID 1. Descriptors that it is given stay the caller's.
class reaper_link {
public:
  reaper_link(kj::UnixEventPort& port, kj::AutoCloseFd socket);

  /// What every command needs: its input if it has none of its own, and the files of control
  /// groups that it writes itself into; those that are -1 are passed over. Once, before the first
  /// spawn.
  result<void> keep(int input, std::initializer_list<int> joins);

  struct streams {
    int out, err;
    int input = -1;  ///< -1: what `keep` said.
    int status = -1; ///< Closed by PID 1 and, when it starts or ends, by the command.
  };

  /// Fills in the request's flags and sends it with the block. `group` is the command's own.
  /// unavailable when PID 1 does not read or is gone.
  result<void> spawn(reaper::spawn_request request, const std::string& block, const streams& three,
                     const exec_group& group);

  /// To the main process of an exec; a process that has ended is passed over.
  result<void> signal(std::uint64_t exec_id, int number);

  /// Who is told of every event. Before `run`.
  void on_event(std::function<void(const reaper::event&)> tell);

  /// Tells every event that has come already. False once PID 1 has closed its end.
  bool tell_pending();

  /// Tells events as they come; ends when PID 1 has closed its end.
  kj::Promise<void> run();

private:
  struct descriptors {
    int fds[reaper::descriptors_max];
    std::size_t count = 0;

    void add(int fd) {
      fds[count++] = fd;
    }
  };

  result<void> send(const void* head, std::size_t head_bytes, const std::string* block,
                    const descriptors& given);

  kj::AutoCloseFd socket_;
  kj::UnixEventPort::FdObserver observer_;
  std::function<void(const reaper::event&)> tell_;
  std::optional<unsigned> group_; ///< The number of the last that PID 1 was handed.
};

} // namespace dsec::init
