#include "state/process.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

using namespace dsec;

namespace {

process_spec named(std::string name) {
  process_spec x;
  x.name = std::move(name);
  x.command = exec_spec::shell("sleep 600");
  return x;
}

std::string refusal_of(const process_spec& x) {
  auto verdict = validate(x);
  if (verdict)
    return "none";
  BOOST_TEST((verdict.error().code == errc::invalid_argument));
  return verdict.error().message;
}

} // namespace

BOOST_AUTO_TEST_SUITE(process)

BOOST_AUTO_TEST_CASE(a_name_of_digits_alone_is_refused_since_it_would_hide_an_id) {
  for (const char* name : {"0", "7", "12", "18446744073709551615"})
    BOOST_TEST(refusal_of(named(name))
               == "process: name is \"" + std::string{name}
                    + "\"; not of digits alone, as ids are");
  for (const std::string& name : {std::string{}, std::string{"a"}, std::string{"7a"},
                                  std::string{"1.5"}, std::string{"-1"}, std::string(64, 'z')})
    BOOST_TEST(refusal_of(named(name)) == "none", name);
}

BOOST_AUTO_TEST_CASE(a_name_of_other_characters_or_too_long_is_refused) {
  for (const std::string& name :
       {std::string{"a b"}, std::string{"\x1b[m"}, std::string(65, 'z'), std::string{"1\0", 2}})
    BOOST_TEST(refusal_of(named(name)).find("at most 64 bytes of [0-9A-Za-z._-]")
               != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
