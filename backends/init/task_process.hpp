#pragma once

#include "backends/init/file_errands.hpp"

#include <kj/async-unix.h>

#include <functional>

namespace dsec::init {

/// Waits for processes that were left alone, so that none stays a zombie.
class task_graves final : public kj::TaskSet::ErrorHandler {
public:
  explicit task_graves(kj::UnixEventPort& port) : port_{port}, waiting_{*this} {}

  /// `pid` is a child that nobody else waits for.
  void take(pid_t pid);

  void taskFailed(kj::Exception&&) override {}

private:
  kj::UnixEventPort& port_;
  kj::TaskSet waiting_;
};

/// A forked process that does something inside the sandbox and tells of it on a socket. It ends
/// with this object, unless it was told to end by itself: a caller that went away does not wait for
/// a stalled store.
class task_process {
public:
  /// `work` is the process's whole life; it gets its end of the socket (SOCK_SEQPACKET).
  static result<kj::Own<task_process>>
  start(kj::UnixEventPort& port, task_graves& graves, const std::function<void(int socket)>& work);

  task_process(kj::UnixEventPort& port, task_graves& graves, kj::AutoCloseFd socket, pid_t pid);
  ~task_process() noexcept;

  /// What it tells next: a status, perhaps with a file. unavailable, with how, if it ended instead.
  kj::Promise<result<file_answer>> answer();

  /// Ends it; its answer is that it has.
  void kill();

  /// It said its last and is about to exit.
  void said_all() {
    ending_ = true;
  }

  /// It ends by itself when its socket is closed.
  void spare() {
    spared_ = true;
  }

  int socket() const {
    return socket_;
  }

private:
  /// Of one that ended without an answer.
  error bury();

  kj::AutoCloseFd socket_;
  kj::UnixEventPort::FdObserver observer_;
  task_graves& graves_;
  pid_t pid_; ///< -1: waited for.
  bool ending_ = false;
  bool spared_ = false;
};

} // namespace dsec::init
