#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

/// What all fuzz targets are made of: the input as a sequence of choices, and a claim that must
/// hold whatever the choices were.

namespace dsec::fuzz {

/// The bytes of one input, taken from the front. What is missing at the end reads as zeros.
class input {
public:
  input(const std::uint8_t* bytes, std::size_t size)
    : rest_{reinterpret_cast<const char*>(bytes), size} {}

  bool empty() const {
    return rest_.empty();
  }

  std::string_view take(std::size_t size) {
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view take_all() {
    return take(rest_.size());
  }

  template <class T>
  T number() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  std::uint8_t byte() {
    return number<std::uint8_t>();
  }

  bool flag() {
    return byte() & 1;
  }

  std::size_t below(std::size_t limit) {
    return byte() % limit;
  }

  /// A byte says how long it is.
  std::string text() {
    return std::string{take(byte())};
  }

  template <class T, std::size_t N>
  const T& one_of(const T (&choices)[N]) {
    static_assert(N <= 256);
    return choices[below(N)];
  }

private:
  std::string_view rest_;
};

/// Ends the run if `holds` is false: libFuzzer keeps the input.
inline void claim(bool holds, std::string_view what, std::string_view detail = {}) {
  if (holds)
    return;
  std::fprintf(stderr, "claim failed: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

} // namespace dsec::fuzz
