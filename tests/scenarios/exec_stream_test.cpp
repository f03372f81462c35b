// Output is what was written: all of it, in order, in time, byte for byte, and there when the exit
// code is.
#include "tests/scenarios/exec_rig.hpp"

#include <algorithm>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

std::string numbers(int last) {
  std::string all;
  for (int i = 1; i <= last; ++i)
    all += fmt::format("{}\n", i);
  return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec_stream, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_last_line_without_newline_and_a_very_long_one_come_whole, exec_rig) {
  auto box = create();
  BOOST_TEST(value(box.exec(exec_spec::shell("printf x"))).out == "x");
  constexpr std::size_t size = 8 << 20;
  auto spec = exec_spec::shell(fmt::format(
    "head -c {0} /dev/zero | tr '\\0' a; head -c {0} /dev/zero | tr '\\0' b >&2", size));
  spec.spool_bytes = size;
  auto x = value(box.exec(spec));
  BOOST_TEST(x.ok(), to_string(x.outcome.kind) << ": " << x.outcome.cause);
  BOOST_TEST((x.out == std::string(size, 'a')));
  BOOST_TEST((x.err == std::string(size, 'b')));
  BOOST_TEST(x.out_bytes == size);
  // What is kept may be less than what was written; then the result says of how much.
  spec.spool_bytes = 1000;
  auto heard = std::make_shared<listener>();
  auto cut = value(box.start(spec, heard).result());
  BOOST_TEST((cut.out == std::string(1000, 'a')));
  BOOST_TEST(cut.out_bytes == size);
  BOOST_TEST(cut.err_bytes == size);
  BOOST_TEST((heard->out() == std::string(size, 'a')));
  BOOST_TEST((heard->err() == std::string(size, 'b')));
}

BOOST_FIXTURE_TEST_CASE(a_progress_bar_without_newlines_is_seen_while_it_moves, exec_rig) {
  auto box = create();
  const auto ticks = at_size(20, 200);
  std::string expected;
  for (std::size_t i = 1; i <= ticks; ++i)
    expected += fmt::format("\r{}", i);
  auto heard = std::make_shared<listener>();
  auto began = steady::now();
  auto x =
    value(box
            .start(exec_spec::shell(fmt::format("i=0; while [ $i -lt {} ]; do i=$((i+1)); printf "
                                                "'\\r%d' $i; sleep 0.1; done",
                                                ticks)),
                   heard)
            .result());
  BOOST_TEST(x.ok());
  BOOST_TEST(heard->out() == expected);
  auto times = heard->times();
  BOOST_TEST_REQUIRE(times.size() >= ticks / 2);
  BOOST_TEST((times.front() - began < 1s));
  BOOST_TEST((times.back() - times.front() > 50ms * ticks));
}

BOOST_FIXTURE_TEST_CASE(characters_that_straddle_a_read_come_whole, exec_rig) {
  auto box = create();
  std::string text = "a";
  while (text.size() < 1 << 20)
    text += "\xe2\x82\xac"; // Never on a power of two.
  done(box.write("/room/text", text));
  exec_spec cat{{"cat", "/room/text"}};
  cat.spool_bytes = 2 << 20;
  auto heard = std::make_shared<listener>();
  BOOST_TEST((value(box.start(cat, heard).result()).out == text));
  BOOST_TEST((heard->out() == text));
  BOOST_TEST((value(box.exec(step(1, cat))).out == text));
  auto again = value(box.exec(step(1, cat)));
  BOOST_TEST(again.replayed);
  BOOST_TEST((again.out == text));
  // A cut is at a byte, not at a character: what is kept are the first bytes.
  cat.spool_bytes = 2;
  BOOST_TEST(value(box.exec(cat)).out == text.substr(0, 2));
  auto halves = std::make_shared<listener>();
  auto x =
    value(box.start(exec_spec::shell("printf '\\342\\202'; sleep 0.05; printf '\\254'"), halves)
            .result());
  BOOST_TEST(x.out == "\xe2\x82\xac");
  BOOST_TEST(halves->out() == "\xe2\x82\xac");
}

BOOST_FIXTURE_TEST_CASE(output_that_is_no_text_is_kept_byte_for_byte_with_the_exit_code, exec_rig) {
  auto box = create();
  auto spec = exec_spec::shell("head -c 65536 /dev/urandom > /room/o; head -c 65536 /dev/urandom > "
                               "/room/e; cat /room/o; cat /room/e >&2; exit 9");
  auto heard = std::make_shared<listener>();
  auto x = value(box.start(step(1, spec), heard).result());
  auto out = value(box.read("/room/o"));
  auto err = value(box.read("/room/e"));
  BOOST_TEST_REQUIRE(out.size() == 65536u);
  BOOST_TEST(x.outcome.code == 9);
  BOOST_TEST((x.out == out));
  BOOST_TEST((x.err == err));
  BOOST_TEST((heard->out() == out));
  BOOST_TEST((heard->err() == err));
  // As recorded, too, and after a restart of the runtime.
  rt.reset();
  rt = at.open(state);
  auto again = value(value(rt->find(box.id())).step(1));
  BOOST_TEST_REQUIRE(again.result.has_value());
  BOOST_TEST((again.result->out == out));
  BOOST_TEST((again.result->err == err));
  BOOST_TEST(again.result->outcome.code == 9);
}

BOOST_FIXTURE_TEST_CASE(when_the_exit_code_is_there_all_output_is, exec_rig) {
  auto box = create();
  const auto expected = numbers(200'000);
  auto spec = exec_spec::shell("seq 1 200000; exit 7");
  spec.spool_bytes = 2 << 20;
  const auto rounds = at_size(40, 500);
  for (std::size_t i = 1; i <= rounds; ++i)
    BOOST_TEST_CONTEXT("round " << i) {
      auto heard = i % 2 ? std::make_shared<listener>() : nullptr;
      auto x = value(box.start(step(i, spec), heard).result());
      BOOST_TEST_REQUIRE(x.outcome.code == 7);
      BOOST_TEST_REQUIRE((x.out == expected));
      if (heard)
        BOOST_TEST_REQUIRE((heard->out() == expected));
      if (i % 10 == 0)
        BOOST_TEST_REQUIRE((value(box.step(i)).result->out == expected));
    }
}

BOOST_FIXTURE_TEST_CASE(a_long_stream_with_little_in_it_runs_to_its_end, exec_rig) {
  auto box = create();
  // Fifteen minutes with a line a minute.
  const int lines = full_size() ? 15 : 5;
  auto heard = std::make_shared<listener>();
  auto x = value(box
                   .start(exec_spec::shell(fmt::format("for i in $(seq {}); do echo $i; sleep {}; "
                                                       "done",
                                                       lines, full_size() ? 60 : 1)),
                          heard)
                   .result());
  BOOST_TEST(x.ok());
  BOOST_TEST(heard->out() == numbers(lines));
  BOOST_TEST(heard->times().size() == static_cast<std::size_t>(lines));
}

BOOST_AUTO_TEST_SUITE_END()
