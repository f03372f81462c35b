#pragma once

#include "backends/init/gate.hpp"
#include "tests/fuzz/played_reaper.hpp"

#include <kj/async-io.h>
#include <kj/timer.h>

#include <memory>
#include <string_view>

namespace dsec::fuzz {

/// A real gate and a real sandbox in this process, in a world whose other parties are played: PID 1
/// is the other end of its socket, the kernel's control groups are plain files, time stands still
/// until it is told to pass. The processes of the file API are real, in user and mount namespaces
/// of their own.
class init_world {
public:
  /// Once per process: the trees, and the namespaces that file tasks enter.
  static void prepare();

  init_world();
  ~init_world() noexcept(false);
  init_world(const init_world&) = delete;

  /// A new connection to dsec-init; non-blocking.
  kj::AutoCloseFd connect();

  /// Lets everything happen that can happen now. Threads and file tasks are not waited for.
  void settle();

  void pass(kj::Duration time);

  /// The end of dsec-init, as when its sandbox is over. Waits for what runs in threads and
  /// processes of its own.
  void end();

  /// Writes one of the files that counters are read from.
  static void write_counter(std::size_t which, std::string_view text);

  /// PID 1 does something.
  void play_reaper(input& in) {
    reaper_->play(in);
  }

  kj::UnixEventPort port;

private:
  struct io_provider;

  /// Lets everything happen that was begun.
  void come_to_rest();

  kj::EventLoop loop_;

public:
  kj::WaitScope scope;

private:
  kj::TimerImpl timer_;
  kj::AutoCloseFd death_;
  std::unique_ptr<played_reaper> reaper_;
  std::string address_; ///< Of the listener, abstract.
  std::unique_ptr<init::sandbox> sandbox_;
  std::unique_ptr<init::gate> gate_;
  kj::Promise<void> accepting_ = nullptr, running_ = nullptr;
  bool over_ = false;
};

} // namespace dsec::fuzz
