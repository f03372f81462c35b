#include "tests/kernel/spawner/spawner_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <string>

using namespace dsec;
using namespace dsec::test;

namespace fs = std::filesystem;

BOOST_FIXTURE_TEST_SUITE(spawner_start, spawner_fixture)

BOOST_AUTO_TEST_CASE(an_idle_spawner_ends_by_itself_and_leaves_nothing) {
  BOOST_REQUIRE_MESSAGE(start({"--idle-exit", "1"}) == 0, said);
  BOOST_TEST(eventually([&] { return !fs::exists(run_dir + "/spawner.lock"); }));
}

BOOST_AUTO_TEST_CASE(a_terminated_spawner_leaves_nothing_when_no_sandbox_lives) {
  BOOST_REQUIRE_MESSAGE(start({"--blanks", "2"}) == 0, said);
  ::kill(spawner_pid(), SIGTERM);
  BOOST_TEST(eventually([&] { return !fs::exists(run_dir + "/spawner.lock"); }));
}

BOOST_AUTO_TEST_CASE(a_terminated_spawner_leaves_live_sandboxes_to_the_next) {
  BOOST_REQUIRE_MESSAGE(start({"--blanks", "2"}) == 0, said);
  pid_t pid = 0;
  {
    spawner_client client{run_dir};
    BOOST_TEST(client.create(fields("s-1"))->code == 0);
    pid = client.list()->pids.at("s-1");
    ::kill(spawner_pid(), SIGTERM);
  }
  BOOST_REQUIRE(eventually([&] { return start() == 0; }));
  spawner_client next{run_dir};
  BOOST_TEST(next.list()->pids.at("s-1") == pid);
  BOOST_TEST(next.destroy("s-1")->code == 0);
}

BOOST_AUTO_TEST_CASE(a_data_dir_in_use_by_another_run_dir_is_refused) {
  BOOST_REQUIRE_MESSAGE(start({"--blanks", "0"}) == 0, said);
  auto other = (folder / "other").string();
  BOOST_TEST(start({"--run-dir", other}) == 1);
  BOOST_CHECK_MESSAGE(said.find("one run-dir at a time") != std::string::npos, said);
  BOOST_TEST(groups_of(other).empty());
}

BOOST_AUTO_TEST_CASE(hello_counts_the_sandboxes_that_somebody_asked_for_and_no_blank_ones) {
  BOOST_REQUIRE_MESSAGE(start({"--blanks", "3"}) == 0, said);
  BOOST_TEST(eventually([&] { return look().subvolumes.size() == 3u; }));
  spawner_client client{run_dir};
  // A client of another build ends a spawner whose number is 0.
  BOOST_TEST(client.hello()->sandboxes == 0u);
  BOOST_TEST(client.create(fields("s-1"))->code == 0);
  BOOST_TEST(client.hello()->sandboxes == 1u);
  BOOST_TEST(client.destroy("s-1")->code == 0);
  BOOST_TEST(client.hello()->sandboxes == 0u);
}

BOOST_AUTO_TEST_CASE(blank_sandboxes_are_used_replaced_and_removed_at_the_end) {
  BOOST_REQUIRE_MESSAGE(start({"--blanks", "3"}) == 0, said);
  BOOST_TEST(eventually([&] { return look().subvolumes.size() == 3u; }));
  spawner_client client{run_dir};
  BOOST_TEST(client.list()->pids.empty());
  for (int i = 0; i < 8; ++i) {
    auto made = client.create(fields("s-" + std::to_string(i)));
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_CHECK_MESSAGE(made->code == 0, made->message);
  }
  BOOST_TEST(client.list()->pids.size() == 8u);
  BOOST_TEST(eventually([&] { return look().subvolumes.size() == 11u; }));
  for (int i = 0; i < 8; ++i)
    BOOST_TEST(client.destroy("s-" + std::to_string(i))->code == 0);
  BOOST_TEST(eventually([&] { return look().subvolumes.size() == 3u; }));
  BOOST_TEST(client.shutdown()->code == 0);
  BOOST_CHECK_MESSAGE(look().none(), look().text());
}

BOOST_AUTO_TEST_CASE(a_blank_sandbox_furnished_for_other_limits_is_never_handed_out) {
  BOOST_REQUIRE_MESSAGE(start({"--blanks", "2"}) == 0, said);
  spawner_client client{run_dir};
  for (std::size_t i = 0; i < 8; ++i) {
    auto wanted = fields("s-" + std::to_string(i));
    // Twice each, so that both a change and a repetition meet blank ones.
    wanted.memory_bytes = (i / 2 % 2 == 0 ? 32ull : 64ull) << 20;
    auto made = client.create(wanted);
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_CHECK_MESSAGE(made->code == 0, made->message);
    BOOST_TEST(eventually([&] { return look().subvolumes.size() == i + 3; }));
    auto shared = inside(client.list()->pids.at(wanted.id), "/dev/shm");
    BOOST_TEST(fs::space(shared).capacity == wanted.memory_bytes / 2);
  }
  for (int i = 0; i < 8; ++i)
    BOOST_TEST(client.destroy("s-" + std::to_string(i))->code == 0);
}

BOOST_AUTO_TEST_CASE(a_group_that_does_not_exist_is_an_error_of_the_caller) {
  BOOST_TEST(start({"--group", "no-such-group-here"}) == 1);
  BOOST_CHECK_MESSAGE(said.find("no-such-group-here") != std::string::npos, said);
}

BOOST_AUTO_TEST_SUITE_END()
