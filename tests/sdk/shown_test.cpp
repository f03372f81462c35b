#define BOOST_TEST_MODULE shown
#include "sdk/cli/shown.hpp"

#include <boost/test/unit_test.hpp>

using dsec::shown;
using namespace std::string_literals;

BOOST_AUTO_TEST_CASE(text_stays_as_it_is) {
  for (auto text : {"", "plain text, 'quoted' \"twice\" ~", "caf\u00e9 \u00a0", "日本語", "🦀",
                    "\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"})
    BOOST_TEST(shown(text) == text);
}

BOOST_AUTO_TEST_CASE(what_a_terminal_obeys_is_escaped) {
  BOOST_TEST(shown("\x1b[31mred\x1b]0;title\x07") == "\\x1b[31mred\\x1b]0;title\\x07");
  BOOST_TEST(shown("two\nlines\t\r\x7f"s + '\0') == "two\\x0alines\\x09\\x0d\\x7f\\x00");
  // CSI in one byte, and the same as a character.
  BOOST_TEST(shown("\x9b"
                   "31m")
             == "\\x9b31m");
  BOOST_TEST(shown("\xc2\x9b"
                   "31m\xc2\x80\xc2\x9f")
             == "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text_are_escaped_and_what_follows_is_read_again) {
  BOOST_TEST(shown("a\xff\xfe"
                   "b")
             == "a\\xff\\xfeb");
  // Begun and not ended; overlong; half a pair of surrogates; beyond the last character.
  BOOST_TEST(shown("\xe6\x97") == "\\xe6\\x97");
  BOOST_TEST(shown("\xc3(") == "\\xc3(");
  BOOST_TEST(shown("\xe6\xc3\xa9") == "\\xe6\u00e9");
  BOOST_TEST(shown("\xc0\x9b\xe0\x80\x9b\xf0\x80\x80\x9b")
             == "\\xc0\\x9b\\xe0\\x80\\x9b\\xf0\\x80\\x80\\x9b");
  BOOST_TEST(shown("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  BOOST_TEST(shown("\xf4\x90\x80\x80\xf5\x80\x80\x80")
             == "\\xf4\\x90\\x80\\x80\\xf5\\x80\\x80\\x80");
}

BOOST_AUTO_TEST_CASE(no_two_texts_look_alike) {
  BOOST_TEST(shown("\\x1b") == "\\x5cx1b");
  BOOST_TEST(shown("\\x1b") != shown("\x1b"));
}
