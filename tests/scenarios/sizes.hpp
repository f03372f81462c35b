#pragma once

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string_view>

namespace dsec::test {

/// Whether the program was started with "-- --full": rows then run at the size in which they broke
/// other systems, as under `./run test --full`.
inline bool full_size() {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  for (int i = 1; i < suite.argc; ++i)
    if (std::string_view{suite.argv[i]} == "--full")
      return true;
  return false;
}

inline std::size_t at_size(std::size_t ordinary, std::size_t full) {
  return full_size() ? full : ordinary;
}

} // namespace dsec::test
