// Why a command ended is told apart, is durable, and carries what is known: for those who grade,
// and for those who decide whether to try again.
#include "bench/demo/census.hpp"
#include "tests/scenarios/exec_rig.hpp"

#include <csignal>
#include <map>
#include <tuple>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::uint64_t limit = 64 << 20;

struct outcome_rig : exec_rig {
  dsec::environment small() const {
    auto x = at.environment();
    x.limits.memory_bytes = limit;
    return x;
  }

  void kill_init_of(const sandbox& box) const {
    auto init = demo::init_pids({at.run_dir, at.data_dir}).at(box.id().str());
    BOOST_TEST_REQUIRE(::kill(init, SIGKILL) == 0);
  }

  void restart() {
    rt.reset();
    rt = at.open(state);
  }
};

/// What a reward function sees of it.
std::tuple<outcome_kind, int, bool> reason(const exec_result& x) {
  return {x.outcome.kind, x.outcome.code, x.oom_kills > 0};
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec_outcome, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(seven_ways_to_end_are_seven_reasons_that_outlive_the_sandbox, outcome_rig) {
  auto box = create(small());
  std::map<std::string, exec_result> told;
  std::map<std::string, std::pair<sandbox, std::uint64_t>> where;
  auto run = [&](const std::string& way, std::uint64_t number, exec_spec spec) {
    told[way] = value(box.exec(step(number, std::move(spec))));
    where.emplace(way, std::pair{box, number});
  };
  run("memory", 1, exec_spec{{"tail", "/dev/zero"}});
  run("memory of a child", 2, exec_spec::shell("tail /dev/zero; exit 5"));
  run("kill -9", 3, exec_spec::shell("kill -9 $$"));
  run("exit 137", 4, exec_spec::shell("exit 137"));
  auto late = exec_spec{{"sleep", "600"}};
  late.deadline = 300ms;
  run("deadline", 5, late);

  auto heard = std::make_shared<listener>();
  auto stopped = box.start(step(6, exec_spec::shell("echo up; exec sleep 600")), heard);
  BOOST_TEST_REQUIRE(heard->hears("up\n"));
  done(box.stop());
  told["stop"] = value(stopped.result());
  where.emplace("stop", std::pair{box, 6});

  auto other = create(small());
  heard = std::make_shared<listener>();
  auto lost = other.start(step(1, exec_spec::shell("echo up; exec sleep 600")), heard);
  BOOST_TEST_REQUIRE(heard->hears("up\n"));
  kill_init_of(other);
  told["loss"] = value(lost.result());
  where.emplace("loss", std::pair{other, 1});

  const auto& memory = told["memory"];
  BOOST_TEST((memory.outcome.kind == outcome_kind::oom_killed));
  BOOST_TEST(memory.outcome.limit_bytes == limit);
  BOOST_TEST(memory.outcome.peak_bytes > limit / 2);
  BOOST_TEST(told["memory of a child"].oom_kills >= 1u);
  BOOST_TEST((reason(told["kill -9"]) == std::tuple{outcome_kind::signalled, SIGKILL, false}));
  BOOST_TEST((reason(told["exit 137"]) == std::tuple{outcome_kind::exited, 137, false}));
  BOOST_TEST((told["deadline"].outcome.kind == outcome_kind::timed_out));
  BOOST_TEST((told["stop"].outcome.kind == outcome_kind::sandbox_stopped));
  BOOST_TEST((told["loss"].outcome.kind == outcome_kind::infrastructure));
  BOOST_TEST(told["loss"].outcome.cause.find("effect unknown") == 0u);
  for (const auto& [a, x] : told)
    for (const auto& [b, y] : told)
      BOOST_TEST((a == b || reason(x) != reason(y)), a << " and " << b);

  restart();
  for (const auto& [way, at_step] : where)
    BOOST_TEST_CONTEXT(way) {
      auto ended = value(rt->find(at_step.first.id()));
      auto kept = value(ended.step(at_step.second)).result;
      BOOST_TEST_REQUIRE(kept.has_value());
      BOOST_TEST((*kept == told[way]));
    }
}

BOOST_FIXTURE_TEST_CASE(no_amount_of_memory_takes_the_sandbox_itself_away, outcome_rig) {
  auto from = small();
  auto box = create(from);
  auto x = value(box.exec(exec_spec::shell(
    "echo 1000 > /proc/self/oom_score_adj; for i in 1 2 3 4; do tail /dev/zero & done; "
    "tail /dev/zero; wait; exit 6")));
  BOOST_TEST(x.oom_kills >= 1u);
  BOOST_TEST(value(box.exec(exec_spec::shell("echo alive"))).out == "alive\n");
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
}

BOOST_FIXTURE_TEST_CASE(what_a_step_wrote_until_it_was_stopped_is_kept_with_its_duration,
                        outcome_rig) {
  for (bool streamed : {true, false})
    for (bool paused : {false, true})
      BOOST_TEST_CONTEXT("streamed " << streamed << ", paused " << paused) {
        auto box = create();
        auto heard = std::make_shared<listener>();
        auto spec = exec_spec::shell("echo out; echo err >&2; sleep 0.2; echo > /room/there; "
                                     "setsid sleep 600 & sleep 600");
        auto running = box.start(step(1, spec), streamed ? heard : nullptr);
        // Asked for: without a stream nobody hears how far it is.
        BOOST_TEST_REQUIRE(bench::ask_until(bench::within(20s), 10ms,
                                            [&] { return bool(box.stat("/room/there").get()); }));
        if (paused)
          done(box.pause());
        auto began = steady::now();
        done(box.stop());
        BOOST_TEST(since(began).count() < 5000);
        auto x = value(running.result());
        BOOST_TEST((x.outcome.kind == outcome_kind::sandbox_stopped));
        BOOST_TEST(x.out == "out\n");
        BOOST_TEST(x.err == "err\n");
        BOOST_TEST(x.out_bytes == 4u);
        BOOST_TEST(x.duration.count() >= 200);
        BOOST_TEST((*value(box.step(1)).result == x));
      }
}

BOOST_FIXTURE_TEST_CASE(what_a_caller_saw_before_dsec_init_died_is_kept_with_the_duration,
                        outcome_rig) {
  auto box = create();
  auto heard = std::make_shared<listener>();
  auto spec = exec_spec::shell("echo err >&2; sleep 0.2; echo out; sleep 600");
  spec.spool_bytes = 2;
  auto running = box.start(step(1, spec), heard);
  BOOST_TEST_REQUIRE(heard->hears("out\n"));
  kill_init_of(box);
  auto x = value(running.result());
  BOOST_TEST((x.outcome.kind == outcome_kind::infrastructure));
  BOOST_TEST(x.out == "ou");
  BOOST_TEST(x.err == "er");
  BOOST_TEST(x.out_bytes == 4u);
  BOOST_TEST(x.err_bytes == 4u);
  BOOST_TEST(x.duration.count() >= 200);
  BOOST_TEST((*value(box.step(1)).result == x));
}

BOOST_FIXTURE_TEST_CASE(a_step_that_never_ran_is_not_in_the_trajectory, outcome_rig) {
  auto box = create();
  auto refused = [&](std::uint64_t number, exec_spec spec, errc code) {
    auto x = box.exec(step(number, std::move(spec))).get();
    BOOST_TEST_REQUIRE(!x);
    BOOST_TEST((x.error().code == code), x.error().message);
  };
  refused(1, exec_spec{{"/no/such/program"}}, errc::no_program);
  refused(2, exec_spec{{"/etc/passwd"}}, errc::not_executable);
  exec_spec elsewhere{{"true"}};
  elsewhere.cwd = "/no/such/directory";
  refused(3, elsewhere, errc::not_found);
  BOOST_TEST(value(box.trajectory()).empty());
  BOOST_TEST(value(box.info()).steps == 0u);
  BOOST_TEST((box.step(1).get().error().code == errc::not_found));
  restart();
  box = value(rt->find(box.id()));
  BOOST_TEST(value(box.trajectory()).empty());
  // Another request may take its place.
  for (std::uint64_t i : {1, 2, 3})
    BOOST_TEST(value(box.exec(step(i, exec_spec{{"echo", "ran"}}))).out == "ran\n");
  BOOST_TEST(value(box.info()).steps == 3u);
}

BOOST_FIXTURE_TEST_CASE(a_step_that_nobody_asks_for_again_ends_with_its_sandbox, outcome_rig) {
  auto state_of_trainer = at.new_state();
  std::string id;
  {
    child_process child{{at.programs / "sdk_trainer", state_of_trainer, at.data_dir, at.run_dir,
                         at.layer.str(), "steps"}};
    id = child.line().value_or("");
    for (std::string line; line != "in flight";)
      line = child.line().value_or("in flight");
    child.kill(SIGKILL);
    child.wait();
  }
  auto again = at.open(state_of_trainer);
  auto box = value(again->find(sandbox_id{id}));
  BOOST_TEST(!value(box.step(4)).result.has_value());
  done(box.stop());
  auto steps = value(box.trajectory());
  BOOST_TEST_REQUIRE(steps.size() == 4u);
  BOOST_TEST_REQUIRE(steps[3].result.has_value());
  BOOST_TEST((steps[3].result->outcome.kind == outcome_kind::sandbox_stopped));
}

BOOST_AUTO_TEST_SUITE_END()
