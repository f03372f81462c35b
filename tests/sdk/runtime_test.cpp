#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// What every test of this file starts from.
struct opened {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);

  sandbox create() {
    return playground::one_sandbox(*rt, at.environment());
  }
};

/// Collects both streams; holds the first piece back until told.
class collector : public output_sink {
public:
  void write(stream which, std::string bytes, std::function<void()> ready) override {
    std::scoped_lock lock{mutex_};
    (which == stream::out ? out : err) += bytes;
    ++pieces;
    if (!held)
      return ready();
    waiting_ = std::move(ready);
    arrived_.notify_all();
  }

  void wait_first() {
    std::unique_lock lock{mutex_};
    arrived_.wait(lock, [&] { return waiting_ != nullptr; });
  }

  void release() {
    std::function<void()> ready;
    {
      std::scoped_lock lock{mutex_};
      held = false;
      ready = std::move(waiting_);
    }
    ready();
  }

  std::string out;
  std::string err;
  bool held = false;
  unsigned pieces = 0;

private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::function<void()> waiting_;
};

} // namespace

BOOST_AUTO_TEST_SUITE(embedded, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_command_runs_and_its_output_comes_back, opened) {
  auto box = create();
  auto x = value(box.exec(exec_spec::shell("echo out; echo err >&2; exit 3")));
  BOOST_TEST((x.outcome.kind == outcome_kind::exited));
  BOOST_TEST(x.outcome.code == 3);
  BOOST_TEST(x.out == "out\n");
  BOOST_TEST(x.err == "err\n");
  done(box.stop());
  auto info = value(box.info());
  BOOST_TEST((info.state == sandbox_state::terminated));
}

BOOST_FIXTURE_TEST_CASE(sixteen_sandboxes_are_made_at_once_and_answer, opened) {
  auto job = value(rt->open_job("many"));
  std::vector<create_options> wanted(16, {at.environment(), {}});
  auto made = job.create_batch(wanted);
  BOOST_TEST_REQUIRE(made.size() == 16u);
  std::vector<future<exec_result>> ran;
  for (auto& each : made)
    ran.push_back(value(each).exec(exec_spec{{"/bin/hostname"}}));
  for (std::size_t i = 0; i < ran.size(); ++i)
    BOOST_TEST(value(ran[i]).out == value(made[i]).id().str() + "\n");
  BOOST_TEST(value(job.list()).size() == 16u);
  done(job.close());
  BOOST_TEST(value(rt->list()).empty());
}

BOOST_FIXTURE_TEST_CASE(output_of_a_mebibyte_is_byte_exact_collected_and_streamed, opened) {
  auto box = create();
  std::string bytes(1 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  done(box.write("/room/blob", bytes));
  auto collected = value(box.exec(exec_spec{{"cat", "/room/blob"}}));
  BOOST_TEST((collected.out == bytes));
  BOOST_TEST(collected.out_bytes == bytes.size());

  auto sink = std::make_shared<collector>();
  exec_spec streamed{{"cat", "/room/blob"}};
  streamed.spool_bytes = 1024;
  auto x = value(box.start(streamed, sink).result());
  BOOST_TEST(sink->out.size() == bytes.size());
  BOOST_TEST((sink->out == bytes));
  BOOST_TEST(x.out.size() == 1024u);
  BOOST_TEST(x.out_bytes == bytes.size());
}

BOOST_FIXTURE_TEST_CASE(a_slow_reader_holds_the_command_back, opened) {
  auto box = create();
  auto sink = std::make_shared<collector>();
  sink->held = true;
  exec_spec spec =
    exec_spec::shell("dd if=/dev/zero bs=65536 count=256 2>/dev/null; echo > /room/written");
  spec.spool_bytes = 0;
  auto running = box.start(spec, sink);
  sink->wait_first();
  auto marker = box.stat("/room/written").get();
  BOOST_TEST(!marker);
  BOOST_TEST(!running.result().ready());
  sink->release();
  BOOST_TEST(value(running.result()).ok());
  BOOST_TEST(sink->out.size() == 256u * 65536u);
}

BOOST_FIXTURE_TEST_CASE(standard_input_reaches_the_command, opened) {
  auto box = create();
  exec_spec spec{{"sha256sum"}};
  spec.stdin_bytes = std::string(3 << 20, 'x');
  auto x = value(box.exec(spec));
  BOOST_TEST(x.out.substr(0, 16) == "3bea8a9a07c1e8dc");
}

BOOST_FIXTURE_TEST_CASE(variables_directory_and_user_are_those_of_the_call, opened) {
  auto box = create();
  exec_spec spec = exec_spec::shell("echo $GREETING; pwd; id -u");
  spec.env = {{"GREETING", "hello"}};
  spec.cwd = "/tmp";
  spec.user = "agent";
  BOOST_TEST(value(box.exec(spec)).out == "hello\n/tmp\n1000\n");
}

BOOST_FIXTURE_TEST_CASE(a_command_can_be_cancelled_signalled_and_timed_out, opened) {
  auto box = create();
  auto cancelled = box.start(exec_spec{{"sleep", "600"}});
  cancelled.cancel();
  BOOST_TEST((value(cancelled.result()).outcome.kind == outcome_kind::cancelled));

  auto sink = std::make_shared<collector>();
  sink->held = true;
  auto signalled = box.start(exec_spec::shell("echo ready; exec sleep 600"), sink);
  sink->wait_first();
  sink->release();
  signalled.signal(15);
  auto x = value(signalled.result());
  BOOST_TEST((x.outcome.kind == outcome_kind::signalled));
  BOOST_TEST(x.outcome.code == 15);

  exec_spec slow{{"sleep", "600"}};
  slow.deadline = std::chrono::milliseconds{100};
  BOOST_TEST((value(box.exec(slow)).outcome.kind == outcome_kind::timed_out));
}

BOOST_FIXTURE_TEST_CASE(a_command_that_does_not_exist_is_told_apart_from_a_broken_sandbox, opened) {
  auto box = create();
  auto x = box.exec(exec_spec{{"/no/such/program"}}).get();
  BOOST_TEST_REQUIRE(!x);
  BOOST_TEST((x.error().code == errc::no_program));
}

BOOST_FIXTURE_TEST_CASE(files_are_written_read_listed_and_described, opened) {
  auto box = create();
  done(box.write("/room/deep/down/file", "content", {.mode = 0640}));
  BOOST_TEST(value(box.read("/room/deep/down/file")) == "content");
  auto status = value(box.stat("/room/deep/down/file"));
  BOOST_TEST((status.type == file_type::regular));
  BOOST_TEST(status.size == 7u);
  BOOST_TEST(status.mode == 0640u);
  auto entries = value(box.list("/room/deep"));
  BOOST_TEST_REQUIRE(entries.size() == 1u);
  BOOST_TEST(entries[0].name == "down");
  std::string large(5 << 20, 'l');
  done(box.write("/room/large", large));
  BOOST_TEST((value(box.read("/room/large")) == large));
  auto limited = box.read("/room/large", 1000).get();
  BOOST_TEST_REQUIRE(!limited);
  BOOST_TEST((limited.error().code == errc::exhausted));
  auto missing = box.read("/room/none").get();
  BOOST_TEST_REQUIRE(!missing);
  BOOST_TEST((missing.error().code == errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(a_paused_and_a_reclaimed_sandbox_wake_for_the_next_command, opened) {
  auto box = create();
  value(box.exec(exec_spec::shell("dd if=/dev/urandom of=/tmp/noise bs=1M count=4 2>/dev/null")));
  auto before = value(box.exec(exec_spec{{"sha256sum", "/tmp/noise"}})).out;
  for (bool reclaim : {false, true}) {
    done(box.pause(reclaim));
    auto wanted = reclaim ? sandbox_state::reclaimed : sandbox_state::paused;
    BOOST_TEST((value(box.info()).state == wanted));
    BOOST_TEST(value(box.exec(exec_spec{{"sha256sum", "/tmp/noise"}})).out == before);
    BOOST_TEST((value(box.info()).state == sandbox_state::running));
  }
  done(box.pause());
  done(box.resume());
  BOOST_TEST((value(box.info()).state == sandbox_state::running));
}

BOOST_FIXTURE_TEST_CASE(a_recorded_step_is_replayed_and_another_request_diverges, opened) {
  auto box = create();
  auto spec = exec_spec::shell("echo ran >> /room/log; echo out");
  spec.step = 7;
  BOOST_TEST(!value(box.exec(spec)).replayed);
  auto again = value(box.exec(spec));
  BOOST_TEST(again.replayed);
  BOOST_TEST(again.out == "out\n");
  BOOST_TEST(value(box.read("/room/log")) == "ran\n");
  spec.argv.back() = "echo other";
  auto other = box.exec(spec).get();
  BOOST_TEST_REQUIRE(!other);
  BOOST_TEST((other.error().code == errc::diverged));
  spec.step = 70'000;
  BOOST_TEST(value(box.exec(spec)).ok());
  auto steps = value(box.trajectory());
  BOOST_TEST_REQUIRE(steps.size() == 2u);
  BOOST_TEST(steps[0].step == 7u);
  BOOST_TEST(steps[0].result->out.empty());
  BOOST_TEST(steps[1].step == 70'000u);
  BOOST_TEST(value(box.step(7)).result->out == "out\n");
  done(box.stop());
  BOOST_TEST(value(box.trajectory()).size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(the_same_key_returns_the_same_sandbox, opened) {
  auto job = value(rt->open_job("keys"));
  auto first = value(job.create({at.environment(), "a"}));
  auto second = value(job.create({at.environment(), "a"}));
  auto third = value(job.create({at.environment(), "b"}));
  BOOST_TEST(first.id().str() == second.id().str());
  BOOST_TEST(first.id().str() != third.id().str());
}

BOOST_FIXTURE_TEST_CASE(a_layer_that_does_not_exist_fails_the_creation_with_its_cause, opened) {
  auto job = value(rt->open_job("wrong"));
  auto environment = at.environment();
  environment.layers = {layer_digest{"sha256-" + std::string(64, '0')}};
  auto made = job.create({environment, {}}).get();
  BOOST_TEST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::not_found), made.error().message);
}

BOOST_FIXTURE_TEST_CASE(a_preempted_job_holds_its_sandboxes_until_it_is_resumed, opened) {
  auto job = value(rt->open_job("held"));
  auto box = value(job.create({at.environment(), {}}));
  auto report = value(job.preempt(preempt_mode::until_resume));
  BOOST_TEST(report.sandboxes == 1u);
  auto refused = box.exec(exec_spec{{"true"}}).get();
  BOOST_TEST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::preempted));
  done(job.resume());
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
}

BOOST_FIXTURE_TEST_CASE(stop_leaves_nothing_in_the_run_directory_and_no_group, opened) {
  auto box = create();
  auto id = box.id().str();
  BOOST_TEST(std::filesystem::exists(at.run_dir / (id + ".sock")));
  done(box.stop());
  done(box.stop());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(at.run_dir))
    BOOST_TEST(entry.path().filename().string().find(id) == std::string::npos, entry.path());
  auto refused = box.exec(exec_spec{{"true"}}).get();
  BOOST_TEST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::invalid_state));
}

BOOST_FIXTURE_TEST_CASE(a_second_owner_learns_the_pid_of_the_first, opened) {
  auto second = runtime::open(state, at.options());
  BOOST_TEST_REQUIRE(!second);
  BOOST_TEST((second.error().code == errc::state_in_use));
  BOOST_TEST(second.error().message.find(std::to_string(::getpid())) != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(handles_outlive_their_runtime_and_answer_unavailable, opened) {
  auto box = create();
  auto job = value(rt->open_job("test"));
  auto flying = box.exec(exec_spec{{"sleep", "600"}});
  rt.reset();
  auto exec = flying.get();
  auto later = box.exec(exec_spec{{"true"}}).get();
  auto created = job.create({at.environment(), {}}).get();
  BOOST_TEST((!exec && exec.error().code == errc::unavailable));
  BOOST_TEST((!later && later.error().code == errc::unavailable));
  BOOST_TEST((!created && created.error().code == errc::unavailable));
  rt = at.open(state);
  auto again = value(rt->find(box.id()));
  BOOST_TEST(value(again.exec(exec_spec{{"true"}})).ok());
}

BOOST_AUTO_TEST_CASE(a_runtime_may_be_closed_by_another_thread_than_the_one_that_opened_it) {
  auto& at = machine();
  std::unique_ptr<runtime> rt;
  std::promise<void> opened, closed;
  std::thread opener{[&] {
    rt = at.open(at.new_state());
    opened.set_value();
    closed.get_future().wait();
  }};
  opened.get_future().wait();
  auto box = playground::one_sandbox(*rt, at.environment());
  done(box.stop());
  rt.reset();
  closed.set_value();
  opener.join();
}

BOOST_AUTO_TEST_SUITE_END()
