#define BOOST_TEST_MODULE init_users
#include "backends/init/reaper_protocol.hpp"
#include "backends/init/users.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace dsec;
using namespace dsec::init;

namespace {

const std::string passwd = "root:x:0:0:root:/root:/bin/sh\n"
                           "agent:x:1000:1000::/home:/bin/sh\n";
const std::string group = "root:x:0:\nwheel:x:10:root,agent\nagent:x:1000:\nidle:x:11:other\n";

} // namespace

BOOST_AUTO_TEST_CASE(a_name_has_the_ids_of_its_line_and_the_groups_it_is_a_member_of) {
  const auto agent = resolve_user("agent", passwd, group);
  BOOST_TEST_REQUIRE(bool{agent});
  BOOST_TEST(agent->uid == 1000u);
  BOOST_TEST(agent->gid == 1000u);
  BOOST_TEST(agent->groups == std::vector<std::uint32_t>{10}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_damaged_line_is_no_user) {
  // Neither its numbers nor the groups of its name may be mixed with what another line says.
  const auto unknown = resolve_user("1000", "agent:x:1000:bad\n", group);
  BOOST_TEST_REQUIRE(bool{unknown});
  BOOST_TEST(unknown->uid == 1000u);
  BOOST_TEST(unknown->gid == 0u);
  BOOST_TEST(unknown->groups.empty());
  const auto root = resolve_user("root:wheel", "root:x:5:bad\n", group);
  BOOST_TEST_REQUIRE(bool{root});
  BOOST_TEST(root->uid == 0u);
  BOOST_TEST(root->gid == 10u);
  const auto later = resolve_user("agent", "agent:x:bad:1\n" + passwd, group);
  BOOST_TEST_REQUIRE(bool{later});
  BOOST_TEST(later->uid == 1000u);
}

BOOST_AUTO_TEST_CASE(a_group_is_given_once_and_no_more_than_PID_1_takes) {
  // The agent writes these files, and dsec-init, outside, reads them.
  std::string names;
  for (int i = 0; i < 10'000; ++i)
    names += "agent,";
  const auto named_often = resolve_user("agent", passwd, "wheel:x:10:" + names + "agent\n");
  BOOST_TEST_REQUIRE(bool{named_often});
  BOOST_TEST(named_often->groups == std::vector<std::uint32_t>{10},
             boost::test_tools::per_element());
  std::string groups;
  for (int i = 0; i < 100; ++i)
    groups += "g" + std::to_string(i) + ":x:" + std::to_string(100 + i) + ":" + names + "\n";
  const auto in_many = resolve_user("agent", passwd, groups);
  BOOST_TEST_REQUIRE(bool{in_many});
  BOOST_TEST(in_many->groups.size() == reaper::groups_max);
  BOOST_TEST(in_many->groups.back() == 100 + reaper::groups_max - 1);
}

BOOST_AUTO_TEST_CASE(an_id_beyond_the_sandboxs_is_refused_whichever_it_is) {
  for (const auto* user : {"70000", "0:70000", "4294967295", "far", "joined"}) {
    const auto refused =
      resolve_user(user, "far:x:65536:1::/:\njoined:x:1:1::/:\n", "away:x:4294967295:joined\n");
    BOOST_TEST_REQUIRE(!refused, user);
    BOOST_TEST((refused.error().code == errc::invalid_argument), user);
    BOOST_TEST(refused.error().message.find("0 to 65535") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(lines_of_any_length_and_kind_are_passed_over) {
  const auto odd = std::string(1 << 20, ':') + "\n:\n\nno colons\n" + passwd;
  const auto agent = resolve_user("agent", odd, odd);
  BOOST_TEST_REQUIRE(bool{agent});
  BOOST_TEST(agent->uid == 1000u);
}
