#pragma once

#include "backends/init/exec_groups.hpp"
#include "backends/init/reaper_protocol.hpp"
#include "state/error.hpp"

#include <kj/async-unix.h>
#include <kj/io.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace dsec::init {

/// dsec-init's end of the socket to PID 1. Descriptors that it is given stay the caller's.
class reaper_link {
public:
  reaper_link(kj::UnixEventPort& port, kj::AutoCloseFd socket);

  /// What every command needs: its input if it has none of its own, the files of control groups
  /// that it writes itself into (those that are -1 are passed over), and a socket on which it tells
  /// of its birth. Once, before the first spawn.
  result<void> keep(int input, std::initializer_list<int> joins);

  struct streams {
    int out, err;
    int input = -1;        ///< -1: what `keep` said.
    int status = -1;       ///< Closed by PID 1 and, when it starts or ends, by the command.
    bool terminal = false; ///< `input` is one, and is to be the command's controlling terminal.
  };

  /// Fills in the request's flags and sends it with the block. `group` is the command's own.
  /// unavailable when PID 1 does not read or is gone.
  result<void> spawn(reaper::spawn_request request, const std::string& block, const streams& three,
                     const exec_group& group);

  enum class whom { main_process, process_group };

  /// To the main process of an exec, or to it and its process group; one whose main process has
  /// ended is passed over.
  result<void> signal(std::uint64_t exec_id, int number, whom to);

  /// The pid and the sandbox's root of a main process that was asked for and has not been told to
  /// have ended, as the machine sees both; nothing if it has not come so far.
  struct outside {
    pid_t pid = -1;
    std::uint32_t root = 0;
  };

  outside born(std::uint64_t exec_id);

  /// PID 1 was found gone when it was asked for something; `run` ends as well.
  bool gone() const {
    return gone_;
  }

  /// Who is told of every event, but not of the end of a child that could not start. Before `run`.
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

  /// Reads births until that of `exec_id` has come.
  std::map<std::uint64_t, outside>::iterator find_birth(std::uint64_t exec_id);

  kj::AutoCloseFd socket_, births_;
  std::map<std::uint64_t, outside> born_;
  unsigned births_unread_ = 0;
  /// Children that could not become their command and whose end is still to come: it bears an exec
  /// id that may be another's by then.
  std::set<std::int32_t> refused_;
  bool gone_ = false;
  kj::UnixEventPort::FdObserver observer_;
  std::function<void(const reaper::event&)> tell_;
  /// The numbers of the last group and account that PID 1 was handed.
  std::optional<std::pair<unsigned, unsigned>> group_;
};

} // namespace dsec::init
