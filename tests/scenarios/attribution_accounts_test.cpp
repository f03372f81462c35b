// Commands are counted by themselves, and the sandbox is still one.
#include "tests/scenarios/attribution_rig.hpp"

#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::uint64_t mib = 1 << 20;

std::string gate(int i) {
  return fmt::format("/room/gate{}", i);
}

/// Commands that run at once, each with that much in a variable, until its gate opens. The shell
/// takes two or three times as much for it.
std::vector<running_exec> holders(const sandbox& box, int count, std::uint64_t bytes) {
  std::vector<running_exec> all;
  for (int i = 0; i < count; ++i) {
    BOOST_TEST_REQUIRE(value(box.exec(exec_spec{{"mkfifo", gate(i)}})).ok());
    auto heard = std::make_shared<listener>();
    all.push_back(
      box.start(exec_spec::shell(fmt::format("x=$(head -c {} /dev/zero | tr '\\0' x); echo has it; "
                                             "read y < {}; echo ${{#x}}",
                                             bytes, gate(i))),
                heard));
    BOOST_TEST_REQUIRE(heard->hears("has it\n"));
  }
  return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(attribution_accounts, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(memory_of_commands_beside_others_counts_and_is_reclaimed, exec_rig) {
  auto box = create();
  auto held = holders(box, 4, 6 * mib);
  BOOST_TEST(value(box.stats()).memory_bytes > 4 * 6 * mib);
  done(box.pause(true));
  BOOST_TEST(value(box.stats()).memory_bytes < 12 * mib);
  done(box.resume());
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(value(box.exec(exec_spec::shell("echo > " + gate(i)))).ok());
    BOOST_TEST(value(held[i].result()).out == "has it\n6291456\n");
  }
}

BOOST_FIXTURE_TEST_CASE(the_memory_limit_is_that_of_all_commands_together, exec_rig) {
  auto from = at.environment();
  from.limits.memory_bytes = 64 * mib;
  auto box = create(from);
  auto held = holders(box, 3, 4 * mib);
  auto x = value(box.exec(exec_spec::shell("x=$(head -c 41943040 /dev/zero | tr '\\0' x)")));
  BOOST_TEST((x.outcome.kind == outcome_kind::oom_killed), x.outcome.cause);
  BOOST_TEST(x.oom_kills == 1u);
  done(box.stop());
  for (auto& each : held)
    BOOST_TEST((value(each.result()).outcome.kind == outcome_kind::sandbox_stopped));
}

BOOST_FIXTURE_TEST_CASE(
  a_sandbox_that_lost_its_pid_1_is_never_shown_as_running_after_its_commands_were_told, exec_rig) {
  auto box = create();
  auto running = box.start(exec_spec{{"sleep", "600"}});
  const auto where = demo::installation{at.run_dir, at.data_dir};
  BOOST_TEST_REQUIRE(::kill(reaper_of(demo::init_pids(where).at(box.id().str())), SIGKILL) == 0);
  BOOST_TEST((value(running.result()).outcome.kind == outcome_kind::self_inflicted));
  BOOST_TEST((value(box.info()).state != sandbox_state::running));
}

BOOST_AUTO_TEST_SUITE_END()
