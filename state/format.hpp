#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace dsec {

/// An enum that names its values through `to_string`. fmt prints all of them.
template <class T>
concept named_enum = std::is_enum_v<T> && requires(T x) {
  { to_string(x) } -> std::same_as<std::string_view>;
};

} // namespace dsec

template <dsec::named_enum T>
struct fmt::formatter<T> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(T x, Context& ctx) const {
    return formatter<std::string_view>::format(to_string(x), ctx);
  }
};
