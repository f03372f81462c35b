// Whatever is under way when a sandbox ends, by whatever, is answered with that end.
#include "state/format.hpp"
#include "tests/scenarios/clocks_rig.hpp"
#include "tests/scenarios/process_rig.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <type_traits>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// Something that ends a sandbox, and what everybody is to hear of it.
struct ending {
  std::string says; ///< In the cause of each outcome, and in each refusal.
  end_cause cause;
  outcome_kind outcome;
  errc refusal;
  std::function<void(const job&, const sandbox&)> bring_about;
};

std::vector<ending> endings() {
  // A cut into the past is the end, at once, perhaps before that is said of the cut.
  return {{"stop", end_cause::stopped, outcome_kind::sandbox_stopped, errc::invalid_state,
           [](const job&, const sandbox& box) {
             done(box.stop());
           }},
          {"stop", end_cause::stopped, outcome_kind::sandbox_stopped, errc::invalid_state,
           [](const job& owner, const sandbox&) {
             done(owner.close());
           }},
          {"time to live", end_cause::time_to_live, outcome_kind::expired, errc::expired,
           [](const job&, const sandbox& box) {
             (void)box.set_clocks({1ms}).get();
           }},
          {"rollout budget", end_cause::rollout_budget, outcome_kind::budget_spent, errc::expired,
           [](const job&, const sandbox& box) {
             (void)box.set_clocks({0ms, 1ms}).get();
           }}};
}

/// An archive that never goes on.
class stuck_archive : public input_source {
public:
  void read(std::function<void(std::string)> next) override {
    std::scoped_lock lock{mutex_};
    asked_.push_back(std::move(next));
    more_.notify_all();
  }

  void wait_for_question() {
    std::unique_lock lock{mutex_};
    BOOST_TEST_REQUIRE(more_.wait_for(lock, 20s, [&] { return !asked_.empty(); }));
  }

private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::function<void(std::string)>> asked_;
};

struct end_rig : exec_rig {
  job owner = open();

  job open() const {
    return value(rt->open_job("ends", {{0ms, 0ms}}));
  }

  sandbox make(const sandbox_clocks& clocks = {}) const {
    return value(owner.create({at.environment(), {}, clocks}));
  }
};

void check(const outcome& x, const ending& how) {
  BOOST_TEST(to_string(x.kind) == to_string(how.outcome), x.cause);
  BOOST_TEST(x.cause.find(how.says) != std::string::npos, x.cause);
}

void check(const error& x, const ending& how) {
  BOOST_TEST(to_string(x.code) == to_string(how.refusal), x.message);
  BOOST_TEST(x.message.find(to_string(how.cause)) != std::string::npos, x.message);
}

/// Everything that can be under way at once, each seen to have begun.
void end_amid_everything(const end_rig& rig, const ending& how) {
  auto box = rig.make();
  auto collected = box.exec(exec_spec::shell("echo begun; : > /tmp/c; exec sleep 600"));
  auto heard = std::make_shared<listener>();
  auto streamed = box.start(exec_spec::shell("echo begun; exec sleep 600"), heard);
  auto recorded = box.exec(step(1, exec_spec::shell("echo begun; : > /tmp/r; exec sleep 600")));
  auto process = value(box.spawn(background("echo up; exec sleep 600")));
  auto over = value(box.spawn(background("exit 3")));
  BOOST_TEST(value(over.wait()).outcome.code == 3);
  auto seen = std::make_shared<watcher>();
  auto attached = process.attach(seen);
  auto first = process.wait(), second = process.wait();
  auto shell = value(box.spawn(session({"sh", "-c", "echo here; exec cat"})));
  auto screen = std::make_shared<watcher>();
  auto on_screen = shell.attach(screen);
  auto archive = std::make_shared<stuck_archive>();
  auto upload = box.unpack("/room/up", archive);
  BOOST_TEST_REQUIRE(heard->hears("begun"));
  BOOST_TEST_REQUIRE((seen->sees("up") && screen->sees("here")));
  archive->wait_for_question();
  BOOST_TEST(
    value(box.exec(exec_spec::shell("until [ -e /tmp/c -a -e /tmp/r ]; do usleep 1000; done")))
      .ok());

  how.bring_about(rig.owner, box);

  for (const auto& each : {collected, streamed.result(), recorded}) {
    auto x = value(each);
    check(x.outcome, how);
    // What it had said until then is not lost with it.
    BOOST_TEST(x.out == "begun\n");
  }
  for (const auto& each : {first, second}) {
    auto x = value(each);
    check(x.outcome, how);
    BOOST_TEST(x.out == "up\n");
  }
  for (const auto& each : {attached.ended(), on_screen.ended()})
    if (auto x = each.get(); !x)
      check(x.error(), how);
  check(error_of(upload), how);

  // Whoever comes later hears the same, from the record.
  for (const auto& late : {process, shell}) {
    auto x = value(late.wait());
    check(x.outcome, how);
    BOOST_TEST((x.out.empty()
                == (x.outcome.cause.find("went with the sandbox") != std::string::npos)),
               x.outcome.cause);
  }
  BOOST_TEST(bench::ask_until(bench::within(20s), 5ms, [&] {
    return value(box.info()).state == sandbox_state::terminated;
  }));
  BOOST_TEST(to_string(value(box.info()).cause) == to_string(how.cause));
  check(value(process.wait()).outcome, how);
  check(error_of(over.wait()), how);
  check(error_of(process.attach(seen).ended()), how);
  check(error_of(box.exec(exec_spec{{"true"}})), how);
  check(error_of(box.read("/etc/passwd")), how);
  check(error_of(box.pause()), how);
  auto again = value(box.exec(step(1, exec_spec::shell("echo begun; : > /tmp/r; exec sleep 600"))));
  BOOST_TEST(again.replayed);
  check(again.outcome, how);
  BOOST_TEST((error_of(box.exec(step(1, exec_spec{{"true"}}))).code == errc::diverged));
  check(error_of(box.exec(step(2, exec_spec{{"true"}}))), how);

  auto page = value(rig.owner.events());
  for (const auto& [of, code] : {std::pair{process, -1}, {shell, -1}, {over, 3}}) {
    std::vector<outcome> told;
    for (const auto& x : page.events)
      if (x.kind == event_kind::process_ended && x.sandbox == box.id() && x.exec == of.id())
        told.push_back(x.outcome.value());
    BOOST_TEST_REQUIRE(told.size() == 1u);
    if (code >= 0)
      BOOST_TEST(told[0].code == code);
    else
      check(told[0], how);
  }
}

/// An outcome, or nothing that has one, or a refusal.
using said = result<std::optional<outcome>>;

template <class T>
said said_by(const result<T>& x) {
  if (!x)
    return x.error();
  if constexpr (std::is_same_v<T, exec_result>)
    return std::optional{x->outcome};
  else
    return std::optional<outcome>{};
}

/// What is wrong with an answer in the moment of that end; empty: nothing.
std::string fault_of(const said& x, const ending& how) {
  if (!x)
    return x.error().code == how.refusal
               && x.error().message.find(to_string(how.cause)) != std::string::npos
             ? std::string{}
             : fmt::format("{}: {}", x.error().code, x.error().message);
  const auto& told = *x;
  if (!told || told->kind == outcome_kind::exited
      || (told->kind == how.outcome && told->cause.find(how.says) != std::string::npos))
    return {};
  return fmt::format("{}: {}", told->kind, told->cause);
}

/// Users, each of whom goes on until refused: each answer is an end of its own or the sandbox's.
void use_until_it_ends(const sandbox& box, const ending& how, const std::function<void()>& then) {
  std::atomic<unsigned> begun{0};
  std::mutex noting;
  std::vector<std::string> faults;
  auto user = [&](std::function<said()> use) {
    return std::jthread{[&, use = std::move(use)] {
      for (bool goes_on = true; goes_on; ++begun) {
        auto x = use();
        goes_on = bool(x);
        std::scoped_lock lock{noting};
        if (auto fault = fault_of(x, how); !fault.empty())
          faults.push_back(fault);
      }
    }};
  };
  auto process = value(box.spawn(background("exec sleep 600")));
  const auto waiting = process.wait();
  const auto watching = process.attach(std::make_shared<watcher>()).ended();
  const std::string text(100'000, 'x');
  {
    std::vector<std::jthread> users;
    users.push_back(user([&] { return said_by(box.exec(exec_spec{{"true"}}).get()); }));
    users.push_back(user([&] {
      auto heard = std::make_shared<listener>();
      return said_by(box.start(exec_spec{{"echo", "x"}}, heard).result().get());
    }));
    users.push_back(user([&] {
      auto made = box.spawn(background("exit 0")).get();
      if (!made)
        return said{made.error()};
      auto ended = made->wait();
      if (auto shown = made->attach(std::make_shared<watcher>()).ended().get(); !shown)
        return said{shown.error()};
      return said_by(ended.get());
    }));
    users.push_back(user([&] { return said_by(box.write("/tmp/f", text).get()); }));
    users.push_back(user([&] { return said_by(box.read("/etc/passwd").get()); }));
    bench::ask_until(bench::within(20s), 1ms, [&] { return begun >= 10; });
    then();
  }
  for (const auto& fault : faults)
    BOOST_ERROR(fault);
  check(value(waiting).outcome, how);
  if (auto x = watching.get(); !x)
    check(x.error(), how);
  check(value(process.wait()).outcome, how);
}

} // namespace

BOOST_AUTO_TEST_SUITE(lifecycle_end, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(whatever_is_under_way_when_a_sandbox_ends_is_answered_with_that_end) {
  auto& at = machine();
  for (std::size_t i = 0; i < at_size(2, 50); ++i)
    for (const auto& how : endings())
      BOOST_TEST_CONTEXT(to_string(how.cause) << ", round " << i)
  end_amid_everything({}, how);
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_FIXTURE_TEST_CASE(an_upload_that_is_all_that_is_under_way_hears_of_that_end_too, end_rig) {
  for (std::size_t i = 0; i < at_size(5, 50); ++i)
    for (const auto& how : endings())
      BOOST_TEST_CONTEXT(to_string(how.cause) << ", round " << i) {
        owner = open(); // One of the ends has closed it.
        auto box = make();
        auto archive = std::make_shared<stuck_archive>();
        auto upload = box.unpack("/room/up", archive);
        archive->wait_for_question();
        how.bring_about(owner, box);
        check(error_of(upload), how);
      }
}

BOOST_FIXTURE_TEST_CASE(what_is_asked_in_the_moment_of_the_end_hears_of_no_other_reason, end_rig) {
  for (std::size_t i = 0; i < at_size(4, 100); ++i)
    for (const auto& how : endings())
      BOOST_TEST_CONTEXT(to_string(how.cause) << ", round " << i) {
        owner = open(); // One of the ends has closed it.
        auto box = make();
        use_until_it_ends(box, how, [&] { how.bring_about(owner, box); });
      }
}

BOOST_FIXTURE_TEST_CASE(a_time_to_live_that_is_over_before_the_sandbox_is_up_is_told_as_that,
                        end_rig) {
  const auto how = endings()[2];
  for (std::size_t i = 0; i < at_size(20, 300); ++i) {
    // From far too short to just long enough.
    create_options wanted{at.environment(), {}, {std::chrono::milliseconds{1 + i % 20 * 2}}};
    auto made = owner.create(wanted).get();
    BOOST_TEST_CONTEXT("a time to live of " << wanted.clocks.time_to_live.count() << " ms") {
      if (!made) {
        check(made.error(), how);
        continue;
      }
      auto x = made->exec(exec_spec{{"sleep", "600"}}).get();
      if (x)
        check(x->outcome, how);
      else
        check(x.error(), how);
    }
  }
  BOOST_TEST(bench::ask_until(bench::within(20s), 10ms, [&] {
    return std::ranges::all_of(value(rt->list(true)), [](const sandbox_info& x) {
      return x.state == sandbox_state::terminated && x.cause == end_cause::time_to_live;
    });
  }));
}

BOOST_FIXTURE_TEST_CASE(a_shell_command_that_its_sandbox_takes_along_ends_as_killed, clocks_rig) {
  for (std::size_t i = 0; i < at_size(3, 50); ++i) {
    auto tiny = cli({"run", "--image", "busybox", "--ttl", "0.001", "--", "sleep", "600"});
    BOOST_TEST(tiny.code == 137, tiny.err);
    BOOST_TEST(tiny.err.find("time to live of 1 ms") != std::string::npos, tiny.err);

    auto box = create({});
    auto process = value(box.spawn([] {
      process_spec x;
      x.name = "it";
      x.command = exec_spec::shell("echo up; exec sleep 600");
      return x;
    }()));
    auto words = [&](std::vector<std::string> command) {
      std::vector<std::string> all{at.programs / "dsec", "--state-dir", state};
      all.insert(all.end(), command.begin(), command.end());
      return all;
    };
    child_process attached{words({"attach", box.id().str(), "it"})};
    child_process running{words({"exec", box.id().str(), "--", "sh", "-c", "echo up; sleep 600"})};
    BOOST_TEST_REQUIRE(attached.line().value_or("") == "up");
    BOOST_TEST_REQUIRE(running.line().value_or("") == "up");
    done(box.stop());
    BOOST_TEST(attached.wait() == 137);
    BOOST_TEST(running.wait() == 137);
  }
}

BOOST_AUTO_TEST_SUITE_END()
