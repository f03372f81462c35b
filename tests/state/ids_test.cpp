#include "state/ids.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace dsec;

BOOST_AUTO_TEST_SUITE(ids)

BOOST_AUTO_TEST_CASE(a_sandbox_id_names_its_birth_node_and_sequence) {
  auto id = make_sandbox_id(make_node_id(0x5f02a1bc), 17);
  BOOST_TEST(id.str() == "n5f02a1bc-17");
  BOOST_TEST(node_of(id)->str() == "n5f02a1bc");
  BOOST_TEST(*sequence_of(id) == 17u);
  auto last = make_sandbox_id(make_node_id(0), std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(*sequence_of(last) == std::numeric_limits<std::uint64_t>::max());
}

BOOST_AUTO_TEST_CASE(what_is_no_sandbox_id_is_told_with_its_value) {
  for (auto text : {"", "n5f02a1bc", "n5f02a1bc-", "n5f02a1bc-017", "n5f02a1bc-+1", "n5f02a1bc--1",
                    "n5f02a1bc-1x", "N5f02a1bc-1", "n5F02a1bc-1", "n5f02a1b-1", "x-1",
                    "n5f02a1bc-18446744073709551616", "../n5f02a1bc-1"}) {
    BOOST_TEST_CONTEXT(text) {
      auto node = node_of(sandbox_id{text});
      BOOST_TEST(!node);
      BOOST_TEST(!sequence_of(sandbox_id{text}));
      BOOST_TEST(!validate(sandbox_id{text}));
      BOOST_TEST((node.error().code == errc::invalid_argument));
      BOOST_TEST(node.error().message.find(std::string{"\""} + text) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(job_names_are_short_and_plain) {
  for (auto text : {"a", "train-7", "A.b_c-9", "."})
    BOOST_TEST(bool{validate(job_id{text})}, text);
  BOOST_TEST(bool{validate(job_id{std::string(64, 'x')})});
  for (auto text : {"", "a b", "a/b", "é", "a\n"})
    BOOST_TEST(!validate(job_id{text}), text);
  BOOST_TEST(!validate(job_id{std::string(65, 'x')}));
  BOOST_TEST(!validate(job_id{std::string{"a\0b", 3}}));
}

BOOST_AUTO_TEST_CASE(layer_digests_have_one_spelling) {
  auto digits = std::string(64, 'a');
  BOOST_TEST(bool{validate(layer_digest{"sha256-" + digits})});
  for (auto text : {digits, "sha256:" + digits, "sha256-" + digits + "0",
                    "sha256-" + std::string(64, 'A'), std::string{"sha256-"}})
    BOOST_TEST(!validate(layer_digest{text}), text);
}

BOOST_AUTO_TEST_SUITE_END()
