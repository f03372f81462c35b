// Readers of a process: any number, each at its own pace.
#include "tests/scenarios/process_rig.hpp"

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

BOOST_AUTO_TEST_SUITE(process_watch, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(
  a_watcher_that_stops_reading_freezes_no_other_and_a_new_one_is_served_at_once, exec_rig) {
  auto box = create();
  auto process = value(box.spawn(background("exec yes line")));
  auto stuck = std::make_shared<watcher>(true);
  auto live = std::make_shared<watcher>();
  auto first = process.attach(stuck);
  auto second = process.attach(live);
  BOOST_TEST_REQUIRE(stuck->sees("line\n"));
  const auto much = at_size(8, 256) << 20;
  BOOST_TEST(live->flows(much));
  const auto asked = steady::now();
  auto late = std::make_shared<watcher>();
  auto third = process.attach(late, attach_from::tail);
  BOOST_TEST(late->sees("line\n"));
  BOOST_TEST(since(asked).count() < 1000);
  BOOST_TEST(live->flows(much));
  BOOST_TEST((stuck->out().size() < (1u << 20)));
  done(process.kill());
  BOOST_TEST((value(process.wait()).outcome.kind == outcome_kind::cancelled));
  done(second.ended());
  done(third.ended());
  // It goes on where it was, and is told what it missed.
  stuck->go_on();
  done(first.ended());
  BOOST_TEST(stuck->skipped_bytes() > much);
  const auto info = value(box.processes()).front();
  BOOST_TEST(stuck->out().size() + stuck->skipped_bytes() == info.out_bytes);
}

BOOST_FIXTURE_TEST_CASE(a_watcher_sees_the_kept_output_from_its_oldest_byte_or_what_is_new,
                        exec_rig) {
  auto box = create();
  auto wanted = with_input("echo old; while read word; do echo $word; done", "reader");
  wanted.command.spool_bytes = 64;
  auto process = value(box.spawn(wanted));
  auto all = std::make_shared<watcher>();
  auto first = process.attach(all);
  BOOST_TEST_REQUIRE(all->sees("old\n"));
  auto tail = std::make_shared<watcher>();
  auto second = process.attach(tail, attach_from::tail);
  done(process.write("new\n"));
  BOOST_TEST(all->sees("new\n"));
  BOOST_TEST(tail->sees("new\n"));
  BOOST_TEST(tail->out() == "new\n");
  std::string long_word(100, 'x');
  done(process.write(long_word + "\n", true));
  auto x = value(process.wait());
  BOOST_TEST(x.out == std::string(63, 'x') + "\n");
  BOOST_TEST(x.out_bytes == 8u + 101u);
  done(first.ended());
  done(second.ended());
  BOOST_TEST(all->out() == "old\nnew\n" + long_word + "\n");
  auto again = std::make_shared<watcher>();
  done(process.attach(again).ended());
  BOOST_TEST(again->out() == x.out);
  BOOST_TEST(again->skipped_bytes() == 45u);
  BOOST_TEST(again->skips() == (std::vector<std::size_t>{0}), boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_watcher_that_detaches_ends_neither_the_process_nor_the_others, exec_rig) {
  auto box = create();
  auto process = value(box.spawn(with_input("while read word; do echo $word; done")));
  auto one = std::make_shared<watcher>();
  auto other = std::make_shared<watcher>();
  auto first = process.attach(one);
  auto second = process.attach(other);
  done(process.write("a\n"));
  BOOST_TEST(one->sees("a\n"));
  first.detach();
  done(first.ended());
  done(process.write("b\n", true));
  done(second.ended());
  BOOST_TEST(other->out() == "a\nb\n");
  BOOST_TEST(one->out() == "a\n");
}

BOOST_AUTO_TEST_SUITE_END()
