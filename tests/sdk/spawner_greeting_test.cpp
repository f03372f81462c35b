#define BOOST_TEST_MODULE spawner_greeting

#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_link.hpp"
#include "sdk/embed/runtime.hpp"
#include "tests/sdk/fake_spawner.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <future>
#include <memory>

using namespace dsec;
using namespace dsec::test;

namespace {

/// What this program, as if it were the spawner of its own build, hears from the one that is there.
result<spawner_report> greet(const fake_spawner& there) {
  io_loop loop;
  std::unique_ptr<spawner_link> link;
  std::promise<result<spawner_report>> answer;
  loop.run([&] {
    link = std::make_unique<spawner_link>(loop, spawner_options{there.run_dir, there.run_dir,
                                                                "/proc/self/exe"});
    link->hello([&](result<spawner_report> x) { answer.set_value(std::move(x)); });
  });
  auto heard = answer.get_future().get();
  loop.run([&] { link.reset(); });
  return heard;
}

bool says(const result<spawner_report>& x, std::initializer_list<std::string_view> parts) {
  if (x)
    return false;
  for (auto part : parts)
    if (x.error().message.find(part) == std::string::npos) {
      BOOST_TEST_MESSAGE(x.error().message);
      return false;
    }
  return true;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_spawner_of_another_build_with_sandboxes_is_used_if_its_protocol_is_ours) {
  fake_spawner there{{{"another-build", wire::SPAWNER_PROTOCOL, 3}}};
  auto heard = greet(there);
  BOOST_TEST_REQUIRE(bool(heard), (heard ? "" : heard.error().message));
  BOOST_TEST(heard->version == "another-build");
}

BOOST_AUTO_TEST_CASE(a_spawner_of_another_protocol_with_sandboxes_is_refused_with_advice) {
  fake_spawner there{{{"another-build", wire::SPAWNER_PROTOCOL + 1, 3}}};
  auto refused = greet(there);
  const auto protocol = fmt::format("protocol {}", wire::SPAWNER_PROTOCOL + 1);
  BOOST_TEST(says(refused, {there.run_dir.c_str(), "pid 4711", "another-build", protocol,
                            "stop its 3 sandboxes", "dsec stop", "leases"}));
  BOOST_TEST((refused.error().code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(a_runtime_is_not_opened_for_ever_on_a_spawner_that_never_answers) {
  fake_spawner there{std::nullopt};
  runtime_options options;
  options.data_dir = there.run_dir;
  options.run_dir = there.run_dir;
  options.backend_timeout = std::chrono::milliseconds{200};
  auto refused = runtime::open(there.run_dir / "state", options);
  BOOST_TEST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::unavailable));
  BOOST_TEST(refused.error().message.find("dsec-spawner") != std::string::npos);
  BOOST_TEST(refused.error().message.find("200 ms") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_time_limit_that_is_none_is_refused_by_name) {
  runtime_options options;
  options.backend_timeout = std::chrono::milliseconds{0};
  auto refused = runtime::open("/tmp/dsec-never-made", options);
  BOOST_TEST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::invalid_argument));
  BOOST_TEST(refused.error().message.find("backend_timeout") != std::string::npos);
  BOOST_TEST(!std::filesystem::exists("/tmp/dsec-never-made"));
}
