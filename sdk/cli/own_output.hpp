#pragma once

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dsec {

/// One of this program's output streams, written to by a thread of its own: a terminal or pipe that
/// takes nothing must not keep the event loop from hearing a signal. Loop only.
class own_output {
public:
  explicit own_output(int fd);

  /// Nobody waits for what the stream has not taken.
  ~own_output();

  own_output(const own_output&) = delete;
  own_output& operator=(const own_output&) = delete;

  /// Answers when the stream has taken it, takes nothing any more, or its output is dropped.
  kj::Promise<void> write(std::string bytes);

  /// What the stream has not taken is not waited for any more, and nothing more is given to it.
  void drop();

  /// What it was given.
  std::uint64_t bytes() const {
    return bytes_;
  }

  /// Why it takes nothing any more, an errno value; 0: it does.
  int failed() const;

  /// Calls `on_failure` once it takes nothing any more.
  void watch(std::function<void()> on_failure);

private:
  struct line;

  std::shared_ptr<line> line_;
  kj::Own<kj::PromiseFulfiller<void>> tell_dropped_;
  kj::ForkedPromise<void> dropped_;
  std::uint64_t bytes_ = 0;
};

/// Writes all of it, for as long as that takes. Returns 0 or an errno value.
int write_all(int fd, const char* bytes, std::size_t size);

} // namespace dsec
