// What happened to every sandbox of a job, in one order, as its owner reads it.
#include "state/event_invariants.hpp"
#include "tests/scenarios/events_rig.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <sstream>

using namespace dsec;
using namespace dsec::test;
using strings = std::vector<std::string>;
namespace utf = boost::unit_test;

namespace {

struct opened {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);
  job owner = value(rt->open_job("train", no_lease()));

  sandbox create() {
    return value(owner.create({at.environment(), {}, {}}));
  }

  finished dsec(strings args) const {
    strings argv{at.programs / "dsec", "--state-dir", state};
    argv.insert(argv.end(), args.begin(), args.end());
    return run_program(argv);
  }
};

exec_spec step(std::uint64_t number, std::string script) {
  auto spec = exec_spec::shell(std::move(script));
  spec.step = number;
  return spec;
}

strings lines_of(const std::string& text) {
  strings all;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);)
    all.push_back(line);
  return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(events_life, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(the_life_of_a_sandbox_is_told_in_order_with_every_outcome, opened) {
  heard_events heard;
  auto reading = owner.follow(1, heard.listener());
  auto box = create();
  value(box.exec(step(1, "exit 3")));
  auto late = step(2, "sleep 600");
  late.deadline = std::chrono::milliseconds{50};
  value(box.exec(late));
  auto none = box
                .exec([] {
                  exec_spec x{{"no-such-program"}};
                  x.step = 3;
                  return x;
                }())
                .get();
  BOOST_TEST((!none && none.error().code == errc::no_program));
  value(box.exec(exec_spec{{"true"}}));
  done(box.pause(true));
  value(box.exec(exec_spec{{"false"}}));
  done(box.stop());
  BOOST_TEST(heard.wait_for(event_kind::stopped, box));
  auto all = heard.all();
  auto told = in_short(all);
  strings expected{"created",
                   "running",
                   "exec_started 1",
                   "exec_ended 1 exited",
                   "exec_started 2",
                   "exec_ended 2 timed_out",
                   "exec_started 3",
                   "exec_ended 3",
                   "exec_started",
                   "exec_ended exited",
                   "paused",
                   "reclaimed",
                   "resumed",
                   "exec_started",
                   "exec_ended exited",
                   "stopped stopped"};
  BOOST_TEST((told == expected), fmt::format("{}", fmt::join(told, ", ")));
  for (const auto& x : violations(all))
    BOOST_ERROR(x);
  BOOST_TEST(all[3].outcome->code == 3);
  BOOST_TEST(all[7].detail == "start 'no-such-program': no such program");
  BOOST_TEST(all[14].outcome->code == 1);
  BOOST_TEST((in_short(kept_events(owner, 1, 3)) == told));
}

BOOST_FIXTURE_TEST_CASE(the_cli_prints_one_line_or_one_object_for_each_event, opened) {
  auto box = create();
  value(box.exec(step(1, "exit 3")));
  done(box.stop());
  auto text = dsec({"events", "train"});
  BOOST_TEST(text.code == 0, text.err);
  auto lines = lines_of(text.out);
  BOOST_TEST_REQUIRE(lines.size() == 5u);
  BOOST_TEST(lines[3].starts_with("4  20"), lines[3]);
  BOOST_TEST(lines[3].find(box.id().str()) != std::string::npos, lines[3]);
  BOOST_TEST(lines[3].ends_with("exec_ended step 1  exited 3"), lines[3]);
  BOOST_TEST(lines[4].ends_with("stopped  stopped"), lines[4]);

  auto json = lines_of(dsec({"events", "train", "--from", "4", "--json"}).out);
  BOOST_TEST_REQUIRE(json.size() == 2u);
  auto ended = nlohmann::json::parse(json[0]);
  BOOST_TEST(ended["cursor"].get<int>() == 4);
  BOOST_TEST(ended["kind"].get<std::string>() == "exec_ended");
  BOOST_TEST(ended["step"].get<int>() == 1);
  BOOST_TEST(ended["outcome"]["code"].get<int>() == 3);
  BOOST_TEST(nlohmann::json::parse(json[1])["cause"].get<std::string>() == "stopped");

  auto none = dsec({"events", "never"});
  BOOST_TEST(none.code == 125);
  BOOST_TEST(none.err.find("never") != std::string::npos, none.err);
}

BOOST_FIXTURE_TEST_CASE(the_events_of_a_closed_job_can_be_read_until_it_is_opened_again, opened) {
  auto box = create();
  done(owner.close());
  auto lines = lines_of(dsec({"events", "train"}).out);
  BOOST_TEST_REQUIRE(lines.size() == 3u);
  BOOST_TEST(lines[2].ends_with("stopped  stopped"), lines[2]);
  rt.reset();
  rt = at.open(state);
  auto closed = value(rt->find_job("train"));
  BOOST_TEST(kept_events(closed).size() == 3u);
  auto again = value(rt->open_job("train", no_lease()));
  BOOST_TEST(kept_events(again).empty());
  auto page = value(again.events());
  BOOST_TEST(page.next == 4u);
  BOOST_TEST(page.oldest == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
