#pragma once

#include <kj/array.h>
#include <kj/async-unix.h>
#include <kj/io.h>
#include <kj/refcount.h>

namespace dsec::init {

/// Our end of a command's standard input.
class input_pipe : public kj::Refcounted {
public:
  /// `pipe` is the writing end, non-blocking.
  input_pipe(kj::UnixEventPort& port, kj::AutoCloseFd pipe);

  /// Answers when all of `bytes` is in the pipe, or nobody reads it any more.
  kj::Promise<void> write(kj::Array<const kj::byte> bytes);

  /// The command sees the end of its input. Idempotent.
  void close();

  /// Neither closed nor left by its last reader, as far as a write could tell.
  bool open() const {
    return pipe_.get() >= 0;
  }

private:
  kj::Promise<void> write_rest(kj::Array<const kj::byte> bytes, std::size_t done);

  kj::AutoCloseFd pipe_;
  kj::Maybe<kj::Own<kj::UnixEventPort::FdObserver>> observer_;
};

} // namespace dsec::init
