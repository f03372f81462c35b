// A command that is ended is ended with all it started; one that has ended leaves nothing that
// costs.
#include "tests/scenarios/exec_rig.hpp"

#include <algorithm>
#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// Five sleeps: in the background, in a pipeline, in a session of its own.
constexpr auto tree = "sleep 300 & setsid sleep 300 & (sleep 300 &) ; echo up; "
                      "sleep 300 | sleep 300 | cat";

/// What a command costs that does nothing.
std::chrono::microseconds trivial_exec(const sandbox& box) {
  std::vector<std::chrono::microseconds> all;
  for (int i = 0; i < 31; ++i) {
    auto began = steady::now();
    BOOST_TEST_REQUIRE(value(box.exec(exec_spec{{"true"}})).ok());
    all.push_back(std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - began));
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec_cancel, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_cancelled_command_takes_its_whole_tree_along_within_a_second, exec_rig) {
  auto box = create();
  auto heard = std::make_shared<listener>();
  auto running = box.start(exec_spec::shell(tree), heard);
  BOOST_TEST_REQUIRE(heard->hears("up\n"));
  BOOST_TEST_REQUIRE(comes_to(box, "sleep", 5, 5s));
  auto began = steady::now();
  running.cancel();
  auto x = value(running.result());
  BOOST_TEST((x.outcome.kind == outcome_kind::cancelled));
  BOOST_TEST(x.out == "up\n");
  BOOST_TEST(comes_to(box, "sleep", 0, 1s - since(began)));
  BOOST_TEST(value(box.exec(exec_spec::shell("echo next"))).out == "next\n");
}

BOOST_FIXTURE_TEST_CASE(a_deadline_takes_the_whole_tree_along_within_a_second, exec_rig) {
  auto box = create();
  auto spec = exec_spec::shell(tree);
  spec.deadline = 1s;
  auto x = value(box.exec(spec));
  auto ended = steady::now();
  BOOST_TEST((x.outcome.kind == outcome_kind::timed_out));
  BOOST_TEST(x.out == "up\n");
  BOOST_TEST(comes_to(box, "sleep", 0, 1s - since(ended)));
  BOOST_TEST(value(box.exec(exec_spec::shell("echo next"))).out == "next\n");
}

BOOST_FIXTURE_TEST_CASE(the_deadline_is_held_to_a_fifth_of_a_second, exec_rig) {
  auto box = create();
  exec_spec spec{{"sleep", "100"}};
  spec.deadline = 1s;
  auto began = steady::now();
  auto x = value(box.exec(spec));
  auto took = since(began);
  BOOST_TEST((x.outcome.kind == outcome_kind::timed_out));
  BOOST_TEST(took.count() >= 1000);
  BOOST_TEST(took.count() <= 1200);
  BOOST_TEST(x.duration.count() >= 1000);
  BOOST_TEST(x.duration.count() <= 1200);
}

BOOST_FIXTURE_TEST_CASE(a_background_child_that_holds_the_output_neither_holds_the_command_nor_dies,
                        exec_rig) {
  auto box = create();
  auto spec = exec_spec::shell("sleep 60 & echo hi");
  spec.deadline = 5s;
  auto began = steady::now();
  auto x = value(box.exec(spec));
  BOOST_TEST(since(began).count() < 1000);
  BOOST_TEST(x.ok());
  BOOST_TEST(x.out == "hi\n");
  // It is kept: counted, seen by other commands, and killed by whoever wants to.
  BOOST_TEST(value(box.stats()).processes == 1u);
  BOOST_TEST(value(box.exec(exec_spec::shell("kill $(pidof sleep)"))).ok());
  BOOST_TEST(falls_silent(box, 1s));
}

BOOST_FIXTURE_TEST_CASE(a_deadline_holds_although_a_child_keeps_the_output_open, exec_rig) {
  auto box = create();
  auto spec = exec_spec::shell("setsid sleep 60 & echo hi; exec sleep 60");
  spec.deadline = 500ms;
  auto began = steady::now();
  auto heard = std::make_shared<listener>();
  auto x = value(box.start(spec, heard).result());
  BOOST_TEST((x.outcome.kind == outcome_kind::timed_out));
  BOOST_TEST(since(began).count() < 1000);
  BOOST_TEST(heard->out() == "hi\n");
  BOOST_TEST(falls_silent(box, 1s));
}

BOOST_FIXTURE_TEST_CASE(orphans_of_cancelled_commands_do_not_pile_up, exec_rig) {
  auto box = create();
  auto before = trivial_exec(box);
  for (int i = 0; i < 50; ++i) {
    auto heard = std::make_shared<listener>();
    auto running = box.start(
      exec_spec::shell("(while :; do :; done) & setsid sh -c 'while :; do :; done' & echo up; "
                       "sleep 300"),
      heard);
    BOOST_TEST_REQUIRE(heard->hears("up\n"));
    running.cancel();
    BOOST_TEST((value(running.result()).outcome.kind == outcome_kind::cancelled));
  }
  BOOST_TEST(falls_silent(box, 1s));
  auto used = value(box.stats()).cpu;
  BOOST_TEST(value(box.exec(exec_spec{{"sleep", "0.5"}})).ok());
  BOOST_TEST((value(box.stats()).cpu - used).count() < 100'000);
  auto after = trivial_exec(box);
  BOOST_TEST(after.count() < 2 * before.count() + 5'000);
}

BOOST_FIXTURE_TEST_CASE(a_signal_reaches_the_children_as_a_terminals_would, exec_rig) {
  auto box = create();
  auto heard = std::make_shared<listener>();
  // A shell waits for its child before it heeds a signal: alone it would not end.
  auto running = box.start(
    exec_spec::shell("trap 'echo told; exit 3' INT; echo up; sleep 300; echo not reached"), heard);
  BOOST_TEST_REQUIRE(heard->hears("up\n"));
  BOOST_TEST_REQUIRE(comes_to(box, "sleep", 1, 5s));
  running.signal(SIGINT);
  auto x = value(running.result());
  BOOST_TEST((x.outcome.kind == outcome_kind::exited));
  BOOST_TEST(x.outcome.code == 3);
  BOOST_TEST(x.out == "up\ntold\n");
  BOOST_TEST(falls_silent(box, 1s));
}

BOOST_AUTO_TEST_SUITE_END()
