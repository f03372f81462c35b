#define BOOST_TEST_MODULE init_oom_log
#include "backends/init/oom_log.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace dsec::init;

namespace {

const std::string rest =
  "total-vm:118968kB, anon-rss:40704kB, file-rss:6580kB, shmem-rss:0kB, UID:100000 pgtables:152kB "
  "oom_score_adj:0\n SUBSYSTEM=memory\n";

} // namespace

BOOST_AUTO_TEST_CASE(a_victim_of_a_memory_limit_is_read_from_its_line) {
  const auto x = read_oom_record(
    "3,812,23559746844,-;Memory cgroup out of memory: Killed process 19720 (python3) " + rest);
  BOOST_TEST_REQUIRE(x.has_value());
  BOOST_TEST(x->pid == 19720);
  BOOST_TEST(x->uid == 100000u);
  BOOST_TEST(x->name == "python3");
  BOOST_TEST(!x->machine);
}

BOOST_AUTO_TEST_CASE(a_victim_of_the_machine_is_told_apart) {
  const auto x =
    read_oom_record("3,1,2,-,caller=T1;Out of memory: Killed process 7 (a (b) c) " + rest);
  BOOST_TEST_REQUIRE(x.has_value());
  BOOST_TEST(x->pid == 7);
  BOOST_TEST(x->name == "a (b) c");
  BOOST_TEST(x->machine);
}

BOOST_AUTO_TEST_CASE(a_name_that_pretends_to_be_the_rest_of_the_line_changes_neither_pid_nor_uid) {
  const auto x = read_oom_record(
    "3,1,2,-;Memory cgroup out of memory: Killed process 7 () total-vm: UI) " + rest);
  BOOST_TEST_REQUIRE(x.has_value());
  BOOST_TEST(x->pid == 7);
  BOOST_TEST(x->uid == 100000u);
}

BOOST_AUTO_TEST_CASE(what_a_user_wrote_to_the_log_and_other_lines_are_no_victims) {
  for (const auto& record :
       {"12,1,2,-;Memory cgroup out of memory: Killed process 7 (x) " + rest,
        "3,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=x,pid=7,uid=0\n" + std::string{},
        "3,1,2,-;Memory cgroup out of memory: OOM victim 7 (x) is already exiting.\n"
          + std::string{},
        std::string{"3,1,2,-;Memory cgroup out of memory: Killed process 7 (x) tot"},
        std::string{"3,1,2,-"}, std::string{}})
    BOOST_TEST(!read_oom_record(record).has_value(), record);
}
