#include "backends/rootfs/child_process.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

using namespace dsec;

namespace {

struct with_log {
  temporary_folder folder;

  result<void> shell(const std::string& script) const {
    return run({{"sh", "-c", script}, {}, folder.path() / "log"});
  }
};

bool says(const result<void>& x, const std::string& words) {
  return !x && x.error().message.find(words) != std::string::npos;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(programs_of_the_machine, with_log)

BOOST_AUTO_TEST_CASE(one_that_fails_is_told_with_how_it_ended_and_what_it_wrote) {
  auto x = shell("echo to out; echo to err >&2; exit 3");
  BOOST_TEST(says(x, "run sh: exit code 3"));
  BOOST_TEST(says(x, "to out"));
  BOOST_TEST(says(x, "to err"));
  BOOST_TEST(says(shell("kill -9 $$"), "signal 9"));
}

BOOST_AUTO_TEST_CASE(what_another_wrote_to_the_same_log_is_not_put_down_to_it) {
  BOOST_TEST(bool(shell("echo all went well")));
  auto x = shell("exit 1");
  BOOST_TEST(says(x, "exit code 1"));
  BOOST_TEST(!says(x, "all went well"));
}

BOOST_AUTO_TEST_CASE(of_many_words_the_last_are_told) {
  auto x = shell("i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done; exit 1");
  BOOST_TEST(says(x, "line 999"));
  BOOST_TEST(!says(x, "line 1\n"));
}

BOOST_AUTO_TEST_CASE(one_that_is_not_installed_is_named) {
  auto x = run({{"no-such-program-here"}, {}, folder.path() / "log"});
  BOOST_TEST(says(x, "no-such-program-here"));
  BOOST_TEST(says(x, "not installed"));
}

BOOST_AUTO_TEST_SUITE_END()
