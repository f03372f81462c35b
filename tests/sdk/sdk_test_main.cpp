#define BOOST_TEST_MODULE sdk
#include "tests/sdk/playground.hpp"

#include <boost/test/unit_test.hpp>

namespace {

/// Takes the machine down when all tests are over.
struct machine_end {
  ~machine_end() {
    dsec::test::end_machine();
  }
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(machine_end);
