#pragma once

#include <unistd.h>
#include <utility>

namespace dsec {

/// Owns an open file.
class file_descriptor {
public:
  file_descriptor() = default;

  explicit file_descriptor(int number) : number_{number} {}

  file_descriptor(file_descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}

  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  ~file_descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }

  explicit operator bool() const noexcept {
    return number_ >= 0;
  }

  int get() const noexcept {
    return number_;
  }

private:
  int number_ = -1;
};

} // namespace dsec
