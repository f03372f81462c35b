#pragma once

#include "tests/sdk/playground.hpp"

#include <boost/test/unit_test.hpp>

namespace dsec::test {

/// Skips with the reason where sandboxes cannot run.
inline boost::test_tools::assertion_result needs_root(boost::unit_test::test_unit_id) {
  auto reason = why_not();
  boost::test_tools::assertion_result answer{!reason};
  if (reason)
    answer.message() << *reason;
  return answer;
}

} // namespace dsec::test
