#pragma once

#include "state/error.hpp"
#include "state/format.hpp"
#include "state/ids.hpp"

#include <ostream>

namespace dsec {

/// Lets BOOST_TEST show our enums by name.
template <named_enum T>
std::ostream& operator<<(std::ostream& out, T x) {
  return out << to_string(x);
}

template <class Tag>
std::ostream& operator<<(std::ostream& out, const id<Tag>& x) {
  return out << x.str();
}

template <class T>
std::ostream& operator<<(std::ostream& out, const result<T>& x) {
  return x ? out << "a value" : out << to_string(x.error().code) << ": " << x.error().message;
}

} // namespace dsec
