#pragma once

#include <kj/async.h>
#include <kj/common.h>
#include <kj/exception.h>

#include <cstdint>
#include <string>

namespace dsec::init {

/// One output stream of a process: the last bytes of it, and the wait for more. Positions count
/// from the first byte that the process ever wrote.
class scroll_back {
public:
  /// The last `kept_bytes` are kept for good; a little more may be held for readers who are live.
  explicit scroll_back(std::uint64_t kept_bytes);

  void append(kj::ArrayPtr<const kj::byte> bytes);

  /// No more will come. Idempotent.
  void end();

  bool ended() const {
    return ended_;
  }

  /// All that ever came.
  std::uint64_t written() const {
    return written_;
  }

  /// The oldest byte that is held.
  std::uint64_t oldest() const;

  /// The oldest byte that is kept for good.
  std::uint64_t oldest_kept() const;

  /// What is held from `position` on (not before `oldest`), at most `most`, as far as it lies in
  /// one piece. Empty: more is to come, or nothing. Until the next `append`.
  kj::ArrayPtr<const kj::byte> from(std::uint64_t position, std::size_t most) const;

  /// Writes what is kept to `to`, which has room for `written() - oldest_kept()`.
  void copy_kept(kj::ArrayPtr<kj::byte> to) const;

  /// The next `append` or `end`, for any number of waiters.
  kj::Promise<void> more();

private:
  void tell();

  std::uint64_t kept_bytes_, held_bytes_;
  std::string held_; ///< The byte at position p lies at p % `held_bytes_`.
  std::uint64_t written_ = 0;
  bool ended_ = false;
  kj::Own<kj::PromiseFulfiller<void>> tell_more_;
  kj::ForkedPromise<void> more_;
};

} // namespace dsec::init
