#include "tests/kernel/spawner/spawner_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace dsec::test;

namespace fs = std::filesystem;

namespace {

/// Children of a process whose command has this name.
std::vector<int> children_named(int parent, const std::string& name) {
  auto task = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
  std::vector<int> found;
  std::ifstream children{task};
  for (int pid; children >> pid;) {
    std::string command;
    std::ifstream{"/proc/" + std::to_string(pid) + "/comm"} >> command;
    if (command == name)
      found.push_back(pid);
  }
  return found;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(spawner_crashes, spawner_fixture)

BOOST_AUTO_TEST_CASE(a_new_spawner_adopts_what_lives_and_can_destroy_it) {
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  std::map<std::string, int> before;
  {
    spawner_client client{run_dir};
    for (auto* id : {"s-1", "s-2"})
      BOOST_TEST_REQUIRE(client.create(fields(id))->code == 0);
    before = client.list()->pids;
  }
  kill_spawner();
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  spawner_client client{run_dir};
  BOOST_TEST((client.list()->pids == before));
  BOOST_TEST(client.hello()->slots_used == 2u);
  BOOST_TEST(client.create(fields("s-1"))->code == 0);
  BOOST_TEST((client.list()->pids == before));
  for (auto* id : {"s-1", "s-2"})
    BOOST_TEST(client.destroy(id)->code == 0);
  BOOST_CHECK_MESSAGE(look().none(), look().text());
}

BOOST_AUTO_TEST_CASE(killed_in_the_middle_of_creates_it_leaves_only_what_can_be_adopted) {
  for (int round = 0; round < 5; ++round) {
    BOOST_REQUIRE_MESSAGE(start() == 0, said);
    {
      spawner_client client{run_dir};
      std::vector<std::uint64_t> asked;
      for (int i = 0; i < 12; ++i)
        asked.push_back(client.send_create(fields("s-" + std::to_string(i))));
      client.wait_for(asked[static_cast<std::size_t>(round)]);
      kill_spawner();
    }
    BOOST_REQUIRE_MESSAGE(start() == 0, said);
    spawner_client client{run_dir};
    for (int i = 0; i < 12; ++i) {
      auto made = client.create(fields("s-" + std::to_string(i)));
      BOOST_TEST_REQUIRE(made.has_value());
      BOOST_CHECK_MESSAGE(made->code == 0, made->message);
    }
    BOOST_TEST(client.list()->pids.size() == 12u);
    for (int i = 0; i < 12; ++i)
      BOOST_TEST(client.destroy("s-" + std::to_string(i))->code == 0);
    BOOST_CHECK_MESSAGE(look().none(), look().text());
    kill_spawner();
  }
}

BOOST_AUTO_TEST_CASE(a_killed_dsec_init_takes_its_group_along_and_only_a_tombstone_may_stay) {
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  spawner_client client{run_dir};
  BOOST_TEST_REQUIRE(client.create(fields("s-1"))->code == 0);
  std::ofstream{run_dir + "/s-1.end"} << "cause";
  ::kill(client.list()->pids.at("s-1"), SIGKILL);
  BOOST_TEST(eventually([&] { return client.list()->pids.empty(); }));
  BOOST_TEST((look().files == std::set<std::string>{"s-1.end"}));
  BOOST_TEST(look().processes.empty());
  BOOST_TEST(look().groups.empty());
  BOOST_TEST(look().subvolumes.empty());
  BOOST_TEST(client.destroy("s-1")->code == 0);
  BOOST_CHECK_MESSAGE(look().none(), look().text());
}

BOOST_AUTO_TEST_CASE(a_dsec_init_that_died_while_no_spawner_ran_is_cleaned_by_the_next) {
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  int pid = 0;
  {
    spawner_client client{run_dir};
    BOOST_TEST_REQUIRE(client.create(fields("s-1"))->code == 0);
    pid = client.list()->pids.at("s-1");
  }
  kill_spawner();
  ::kill(pid, SIGKILL);
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  BOOST_TEST(eventually([&] { return look().none(); }));
}

BOOST_AUTO_TEST_CASE(an_adopted_dsec_init_that_dies_is_cleaned_too) {
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  int pid = 0;
  {
    spawner_client client{run_dir};
    BOOST_TEST_REQUIRE(client.create(fields("s-1"))->code == 0);
    pid = client.list()->pids.at("s-1");
  }
  kill_spawner();
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  ::kill(pid, SIGKILL);
  BOOST_TEST(eventually([&] { return look().none(); }));
}

BOOST_AUTO_TEST_CASE(workers_that_are_killed_are_replaced_and_nothing_is_lost) {
  BOOST_REQUIRE_MESSAGE(start() == 0, said);
  spawner_client client{run_dir};
  for (int round = 0; round < 5; ++round) {
    std::vector<std::uint64_t> asked;
    for (int i = 0; i < 10; ++i)
      BOOST_TEST_REQUIRE(client.create(fields("s-" + std::to_string(i)))->code == 0);
    for (int i = 0; i < 10; ++i)
      asked.push_back(client.send_destroy("s-" + std::to_string(i)));
    client.wait_for(asked.front());
    for (auto* name : {"dsec-sweeper", "dsec-networks"})
      for (int pid : children_named(spawner_pid(), name))
        ::kill(pid, SIGKILL);
    for (auto sequence : std::vector(asked.begin() + 1, asked.end()))
      BOOST_TEST(client.wait_for(sequence)->code == 0);
    BOOST_CHECK_MESSAGE(look().none(), look().text());
    BOOST_TEST(client.warm(8)->code == 0);
  }
}

namespace {

/// Kills whichever process of the spawner reaches its n-th step first, for every n, and checks that
/// a new spawner plus a destroy leaves nothing. Ends when no process gets that far.
void crash_everywhere(spawner_fixture& f, const std::string& blanks) {
  int hits = 0;
  for (int n = 1; n < 400; ++n) {
    fs::remove(f.folder / "marker");
    BOOST_TEST_CONTEXT("DSEC_KILL_AT=spawner:" << n << " with --blanks " << blanks) {
      if (f.start({"--blanks", blanks}, std::to_string(n)) == 0) {
        spawner_client client{f.run_dir};
        if (client.create(f.fields("s-1")) && client.destroy("s-1"))
          client.shutdown();
      }
      bool hit = fs::exists(f.folder / "marker");
      f.kill_spawner();
      BOOST_REQUIRE_MESSAGE(f.start() == 0, f.said);
      {
        spawner_client client{f.run_dir};
        auto ended = client.destroy("s-1");
        BOOST_TEST_REQUIRE(ended.has_value());
        BOOST_CHECK_MESSAGE(ended->code == 0, ended->message);
        BOOST_CHECK_MESSAGE(spawner_fixture::eventually([&] { return f.look().none(); }),
                            f.look().text());
        BOOST_TEST(client.shutdown()->code == 0);
      }
      if (!hit)
        break;
      ++hits;
    }
  }
  BOOST_TEST(hits > 40);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_crash_at_any_step_leaves_nothing_after_restart_and_destroy) {
  crash_everywhere(*this, "0");
}

BOOST_AUTO_TEST_CASE(the_same_holds_while_blank_ones_are_built) {
  crash_everywhere(*this, "2");
}

BOOST_AUTO_TEST_SUITE_END()
