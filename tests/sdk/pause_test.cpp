#include "backends/container/init_link.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <algorithm>
#include <chrono>
#include <future>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;
using namespace std::chrono_literals;

namespace {

/// Live output that tells when it has begun.
class first_bytes final : public output_sink {
public:
  void write(stream, std::string, std::function<void()> ready) override {
    if (!told_) {
      told_ = true;
      begun_.set_value();
    }
    ready();
  }

  void wait() {
    begun_.get_future().wait();
  }

private:
  bool told_ = false;
  std::promise<void> begun_;
};

struct opened {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);
  sandbox box = playground::one_sandbox(*rt, at.environment());

  running_exec begin(exec_spec spec) const {
    auto sink = std::make_shared<first_bytes>();
    auto running = box.start(std::move(spec), sink);
    sink->wait();
    return running;
  }

  /// What its dsec-init keeps, as the process of the second life asks.
  std::vector<exec_id> kept() const {
    io_loop loop;
    std::promise<std::vector<exec_id>> answer;
    std::shared_ptr<init_link> link;
    loop.run([&] {
      loop.spawn(init_link::open(loop, box.id(), at.run_dir / (box.id().str() + ".sock"), 2,
                                 std::make_shared<acknowledgements>())
                   .then([&](auto made) {
                     if (made)
                       link = *made;
                     answer.set_value(made ? link->found().execs : std::vector<exec_id>{~0ull});
                   }));
    });
    auto execs = answer.get_future().get();
    loop.run([&] { link.reset(); });
    return execs;
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(frozen_and_left, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_deadline_does_not_pass_while_its_command_is_frozen, opened) {
  auto clock = playground::one_sandbox(*rt, at.environment());
  auto spec = exec_spec::shell("echo begun; usleep 300000; echo over");
  spec.deadline = 1500ms;
  auto running = begin(spec);
  done(box.pause());
  value(clock.exec(exec_spec{{"sleep", "2"}}));
  BOOST_TEST(!running.result().ready());
  BOOST_TEST((value(box.info()).state == sandbox_state::paused));
  done(box.resume());
  auto x = value(running.result());
  BOOST_TEST(x.ok());
  BOOST_TEST(x.out == "begun\nover\n");
  BOOST_TEST(x.duration.count() >= 2000);
}

BOOST_FIXTURE_TEST_CASE(after_a_pause_a_deadline_goes_on_where_it_was, opened) {
  auto spec = exec_spec::shell("echo begun; exec sleep 600");
  spec.deadline = 500ms;
  auto running = begin(spec);
  done(box.pause(true));
  BOOST_TEST(!running.result().ready());
  // The next command thaws what is frozen, the first one as well.
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  BOOST_TEST((value(running.result()).outcome.kind == outcome_kind::timed_out));
}

BOOST_FIXTURE_TEST_CASE(a_frozen_command_ends_with_its_sandbox, opened) {
  auto running = begin(exec_spec::shell("echo begun; exec sleep 600"));
  done(box.pause());
  done(box.stop());
  BOOST_TEST((value(running.result()).outcome.kind == outcome_kind::sandbox_stopped));
}

BOOST_FIXTURE_TEST_CASE(outcomes_that_nobody_can_ask_for_any_more_do_not_outlive_a_restart,
                        opened) {
  auto until_told = std::string{"echo begun; until [ -e /room/go ]; do usleep 10000; done"};
  begin(exec_spec::shell(until_told));
  begin(exec_spec::shell(until_told));
  auto step = exec_spec::shell(until_told);
  step.step = 7;
  begin(step);
  rt.reset();
  rt = at.open(state);
  box = value(rt->find(box.id()));
  // Whoever called the others is gone: they are cancelled. The step is kept until somebody asks.
  auto patience = std::chrono::steady_clock::now() + 10s;
  while (kept().size() != 1 && std::chrono::steady_clock::now() < patience)
    value(box.stats());
  BOOST_TEST(kept().size() == 1u);
  auto job = value(rt->find_job(value(box.info()).job.str()));
  auto told = [&] {
    return std::ranges::count_if(value(job.events()).events, [](const job_event& x) {
      return x.kind == event_kind::exec_ended && x.outcome->kind == outcome_kind::cancelled;
    });
  };
  while (told() != 2 && std::chrono::steady_clock::now() < patience)
    value(box.stats());
  BOOST_TEST(told() == 2);
  done(box.write("/room/go", ""));
  auto joined = value(box.exec(step));
  BOOST_TEST(joined.ok());
  BOOST_TEST(!joined.replayed);
  patience = std::chrono::steady_clock::now() + 10s;
  while (!kept().empty() && std::chrono::steady_clock::now() < patience)
    value(box.stats());
  BOOST_TEST(kept().empty());
}

BOOST_AUTO_TEST_SUITE_END()
