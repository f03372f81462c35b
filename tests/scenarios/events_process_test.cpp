// Processes outlive the node; the job's events tell each start and each end once all the same.
#include "state/event_invariants.hpp"
#include "tests/scenarios/events_rig.hpp"

#include <algorithm>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

struct opened {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);
  job owner = value(rt->open_job("train", no_lease()));
  sandbox box = value(owner.create({at.environment(), {}, {}}));

  void reopen() {
    rt.reset();
    rt = at.open(state);
    owner = value(rt->find_job("train"));
    box = value(rt->find(box.id()));
  }

  process spawn(std::string script) const {
    process_spec wanted;
    wanted.command = exec_spec::shell(std::move(script));
    return value(box.spawn(wanted));
  }

  /// What is told of a process by now.
  std::vector<std::string> told_of(const process& x) const {
    std::vector<std::string> all;
    for (const auto& event : kept_events(owner))
      if (event.exec == x.id())
        all.push_back(in_short(event));
    return all;
  }

  /// Waits until its end is told.
  void wait_for_end(const process& x) const {
    heard_events heard;
    auto reading = owner.follow(1, heard.listener());
    BOOST_TEST_REQUIRE(heard.wait([&](const job_event& event) {
      return event.kind == event_kind::process_ended && event.exec == x.id();
    }));
  }
};

using strings = std::vector<std::string>;

} // namespace

BOOST_AUTO_TEST_SUITE(events_process, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_process_that_ends_while_no_node_lives_is_told_once_by_the_next_one,
                        opened) {
  auto brief = spawn("while ! test -e /room/go; do usleep 1000; done; exit 3");
  auto lasting = spawn("sleep 600");
  done(box.write("/room/go", ""));
  rt.reset();
  for (int life = 0; life < 2; ++life) {
    reopen();
    wait_for_end(brief);
    BOOST_TEST((told_of(brief) == strings{"process_started", "process_ended exited"}));
    BOOST_TEST((told_of(lasting) == strings{"process_started"}));
  }
  auto killed = box.find_process(lasting.id());
  done(killed.kill());
  wait_for_end(lasting);
  done(box.stop());
  reopen();
  BOOST_TEST((told_of(lasting) == strings{"process_started", "process_ended cancelled"}));
  for (const auto& x : violations(kept_events(owner)))
    BOOST_ERROR(x);
}

BOOST_FIXTURE_TEST_CASE(a_process_that_its_sandbox_takes_along_is_told_before_the_stop, opened) {
  auto lasting = spawn("sleep 600");
  done(box.stop());
  auto all = in_short(kept_events(owner));
  BOOST_TEST((told_of(lasting) == strings{"process_started", "process_ended sandbox_stopped"}));
  BOOST_TEST(all.back() == "stopped stopped");
}

BOOST_AUTO_TEST_SUITE_END()
