#pragma once

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace dsec::bench {

/// `returned`, unless it says failure: then a std::system_error with `what` and errno. A bench
/// without its kernel facility has nothing to measure; it unwinds, removes what it made, and ends.
template <class T>
T checked(T returned, const std::string& what) {
  if (returned < 0)
    throw std::system_error{errno, std::generic_category(), what};
  return returned;
}

/// An owned descriptor.
class fd {
public:
  fd() = default;

  explicit fd(int number) : number_{number} {}

  fd(fd&& other) noexcept : number_{std::exchange(other.number_, -1)} {}

  fd& operator=(fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  ~fd() {
    reset();
  }

  int get() const {
    return number_;
  }

  void reset() {
    if (number_ >= 0)
      ::close(std::exchange(number_, -1));
  }

private:
  int number_ = -1;
};

inline void write_file(const std::string& path, const std::string& text) {
  const fd file{checked(::open(path.c_str(), O_WRONLY | O_CLOEXEC), "open " + path)};
  checked(::write(file.get(), text.data(), text.size()), "write " + text + " to " + path);
}

} // namespace dsec::bench
