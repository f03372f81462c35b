#include "backends/init/input_pipe.hpp"

#include <kj/debug.h>

#include <cerrno>
#include <unistd.h>

namespace dsec::init {

input_pipe::input_pipe(kj::UnixEventPort& port, kj::AutoCloseFd pipe) : pipe_{kj::mv(pipe)} {
  observer_ = kj::heap<kj::UnixEventPort::FdObserver>(port, pipe_.get(),
                                                      kj::UnixEventPort::FdObserver::OBSERVE_WRITE);
}

kj::Promise<void> input_pipe::write(kj::Array<const kj::byte> bytes) {
  return write_rest(kj::mv(bytes), 0);
}

kj::Promise<void> input_pipe::write_rest(kj::Array<const kj::byte> bytes, std::size_t done) {
  while (pipe_.get() >= 0 && done < bytes.size()) {
    const ssize_t n = ::write(pipe_, bytes.begin() + done, bytes.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      auto& observer = *KJ_REQUIRE_NONNULL(observer_);
      return observer.whenBecomesWritable().then(
        [this, self = kj::addRef(*this), rest = kj::mv(bytes), done]() mutable {
          return write_rest(kj::mv(rest), done);
        },
        // Closed while it waited.
        [](kj::Exception&&) -> kj::Promise<void> { return kj::READY_NOW; });
    } else if (n < 0 && errno != EINTR) {
      close();
    }
  }
  return kj::READY_NOW;
}

void input_pipe::close() {
  observer_ = nullptr;
  pipe_ = nullptr;
}

} // namespace dsec::init
