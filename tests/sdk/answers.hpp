#pragma once

#include "sdk/embed/future.hpp"

#include <boost/test/unit_test.hpp>

namespace dsec::test {

/// Waits for it; an error fails the test.
template <class T>
T value(const future<T>& x) {
  auto got = x.get();
  BOOST_TEST_REQUIRE(bool(got), (got ? "" : got.error().message));
  return *got;
}

inline void done(const future<void>& x) {
  auto got = x.get();
  BOOST_TEST(bool(got), (got ? "" : got.error().message));
}

} // namespace dsec::test
