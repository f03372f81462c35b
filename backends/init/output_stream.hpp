#pragma once

#include "schemas/command.capnp.h"

#include <kj/async-unix.h>
#include <kj/io.h>

#include <cstdint>
#include <string>

namespace dsec::init {

/// One of a command's two output streams: our end of the pipe, what the spool keeps of it, and the
/// reader that is attached. Without a reader, what the spool has no room for is counted and
/// dropped. With one, the pipe is read only as fast as the reader takes it. Until `begin` nothing
/// is read but by `pull`: a short command costs no round of the event loop.
class output_stream {
public:
  /// `pipe` is the reading end, non-blocking. The first `spool_bytes` are kept.
  output_stream(kj::UnixEventPort& port, kj::AutoCloseFd pipe, std::uint64_t spool_bytes);

  /// Reads from now on whatever comes, until the last writer has closed the pipe. Idempotent.
  void begin();

  /// Takes what lies in the pipe at this moment, unless a reader is attached. True if that was the
  /// rest.
  bool pull();

  /// What the spool has no room for stays in the pipe until a reader is attached or `let_go` is
  /// called.
  void hold() {
    held_ = true;
  }

  void let_go();

  bool ended() const {
    return ended_;
  }

  /// A reader is attached that has not been sent the end.
  bool has_reader() const {
    return sink_ != nullptr;
  }

  /// The end of the stream, for any number of waiters.
  kj::Promise<void> end() {
    return end_.addBranch();
  }

  /// The command is about to be reported: what lies in the pipe still belongs to it, whatever comes
  /// later is dropped. A reader gets the end after the last of it.
  void seal();

  const std::string& kept() const {
    return kept_;
  }

  std::uint64_t bytes() const {
    return total_;
  }

  void drop_spool() {
    kept_.clear();
    kept_.shrink_to_fit();
    spool_bytes_ = 0;
  }

  /// Sends `sink` the spool and then the live bytes; answers when it has been sent the end, or has
  /// been replaced or has failed.
  kj::Promise<void> attach(wire::ByteSink::Client sink);

private:
  /// Held, and the spool is full.
  bool blocked() const {
    return held_ && kept_.size() >= spool_bytes_;
  }

  void keep(const char* bytes, std::size_t size);
  /// Bytes read into the buffer and kept; 0: none are there now, or the stream has ended.
  std::size_t fetch();
  kj::Promise<void> step();
  kj::Promise<void> send(const char* bytes, std::size_t size);
  kj::Promise<void> finish();
  /// Tells the reader the end and lets it go.
  kj::Promise<void> end_reader(wire::ByteSink::Client& sink);
  kj::Promise<void> until_woken();
  void detach();

  kj::AutoCloseFd pipe_;
  kj::UnixEventPort& port_;
  kj::Own<kj::UnixEventPort::FdObserver> observer_; ///< Goes before the descriptor it observes.
  std::uint64_t spool_bytes_;
  std::string kept_;
  std::uint64_t total_ = 0;
  std::string last_; ///< What lay in the pipe at the seal, for the reader, beyond the spool.
  bool sealed_ = false;
  bool ended_ = false;

  kj::Own<kj::PromiseFulfiller<void>> tell_end_;
  kj::ForkedPromise<void> end_;
  /// Ends whatever wait the stream is in, when a reader comes or goes.
  kj::Own<kj::PromiseFulfiller<void>> wake_;
  bool sending_ = false; ///< The reader has not taken all it was sent.

  kj::Maybe<wire::ByteSink::Client> sink_;
  kj::Own<kj::PromiseFulfiller<void>> tell_detached_;
  std::size_t sent_ = 0; ///< Bytes of the spool that the reader has.

  bool begun_ = false;
  bool held_ = false;
  kj::Promise<void> task_; ///< Goes first: it uses the rest.
};

} // namespace dsec::init
