#pragma once

#include <unistd.h>
#include <utility>

namespace dsec::spawner {

/// Owns a file descriptor.
class descriptor {
public:
  descriptor() = default;

  explicit descriptor(int fd) : fd_{fd} {}

  descriptor(descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}

  descriptor& operator=(descriptor&& other) noexcept {
    if (this != &other)
      reset(std::exchange(other.fd_, -1));
    return *this;
  }

  ~descriptor() {
    reset();
  }

  int get() const noexcept {
    return fd_;
  }

  explicit operator bool() const noexcept {
    return fd_ >= 0;
  }

  void reset(int fd = -1) noexcept {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = fd;
  }

  int release() noexcept {
    return std::exchange(fd_, -1);
  }

private:
  int fd_ = -1;
};

} // namespace dsec::spawner
