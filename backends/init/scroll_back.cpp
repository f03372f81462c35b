#include "backends/init/scroll_back.hpp"

#include <algorithm>
#include <cstring>

namespace dsec::init {

namespace {

/// Held in any case, so that a reader who keeps up misses nothing of a stream of which nothing is
/// kept.
constexpr std::uint64_t held_bytes_least = 256 << 10;

} // namespace

scroll_back::scroll_back(std::uint64_t kept_bytes)
  : kept_bytes_{kept_bytes},
    held_bytes_{std::max(kept_bytes, held_bytes_least)},
    more_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_more_ = kj::mv(pair.fulfiller);
  more_ = pair.promise.fork();
}

std::uint64_t scroll_back::oldest() const {
  return written_ - std::min(written_, held_bytes_);
}

std::uint64_t scroll_back::oldest_kept() const {
  return written_ - std::min(written_, kept_bytes_);
}

void scroll_back::append(kj::ArrayPtr<const kj::byte> bytes) {
  while (bytes.size() > 0) {
    const auto at = written_ % held_bytes_;
    const auto n = std::min<std::uint64_t>(bytes.size(), held_bytes_ - at);
    const auto* text = reinterpret_cast<const char*>(bytes.begin());
    // It grows as the process writes: most write little.
    if (held_.size() == at)
      held_.append(text, n);
    else
      std::memcpy(held_.data() + at, text, n);
    written_ += n;
    bytes = bytes.slice(n, bytes.size());
  }
  tell();
}

void scroll_back::end() {
  if (ended_)
    return;
  ended_ = true;
  tell();
}

kj::ArrayPtr<const kj::byte> scroll_back::from(std::uint64_t position, std::size_t most) const {
  const auto at = position % held_bytes_;
  const auto n = std::min<std::uint64_t>({most, written_ - position, held_bytes_ - at});
  return {reinterpret_cast<const kj::byte*>(held_.data()) + at, n};
}

void scroll_back::copy_kept(kj::ArrayPtr<kj::byte> to) const {
  for (auto position = oldest_kept(); position < written_;) {
    const auto piece = from(position, to.size());
    std::memcpy(to.begin(), piece.begin(), piece.size());
    to = to.slice(piece.size(), to.size());
    position += piece.size();
  }
}

kj::Promise<void> scroll_back::more() {
  return more_.addBranch();
}

void scroll_back::tell() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  auto told = kj::mv(tell_more_);
  tell_more_ = kj::mv(pair.fulfiller);
  more_ = pair.promise.fork();
  told->fulfill();
}

} // namespace dsec::init
