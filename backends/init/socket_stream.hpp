#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/io.h>

namespace dsec {

/// A connected stream socket that carries Cap'n Proto messages, on either side of dsec-init. Unlike
/// KJ's own stream it reads ahead, so that small messages cost less than one system call each, and
/// asks to be woken for room to write only while there is none: KJ's is woken each time the peer
/// has read something. Loop only.
class socket_stream final : public kj::AsyncIoStream {
public:
  /// `socket` is non-blocking.
  socket_stream(kj::UnixEventPort& port, kj::AutoCloseFd socket);

  kj::Promise<size_t> tryRead(void* buffer, size_t min_bytes, size_t max_bytes) override;
  kj::Promise<void> write(const void* buffer, size_t size) override;
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override;
  /// Never: a reader learns of the end.
  kj::Promise<void> whenWriteDisconnected() override;
  void shutdownWrite() override;
  void abortRead() override;

private:
  using piece = kj::ArrayPtr<const kj::byte>;

  kj::Promise<size_t> read_on(kj::byte* to, size_t min_bytes, size_t max_bytes, size_t done);
  kj::Promise<void> write_on(piece first, kj::ArrayPtr<const piece> rest);
  kj::Promise<void> wait_for_room();

  kj::UnixEventPort& port_;
  kj::AutoCloseFd socket_;
  kj::UnixEventPort::FdObserver readable_;
  kj::Maybe<kj::Promise<void>> more_; ///< Set when all that had come was read.

  kj::byte ahead_[4096];
  size_t taken_ = 0, filled_ = 0; ///< Of `ahead_`.
};

} // namespace dsec
