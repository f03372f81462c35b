#include "state/exec.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace dsec;

namespace {

exec_spec command(std::vector<std::string> argv) {
  exec_spec x;
  x.argv = std::move(argv);
  return x;
}

/// True if the refusal of `x` is invalid_argument and says all of `parts`.
bool refused(const exec_spec& x, std::initializer_list<std::string_view> parts) {
  auto verdict = validate(x);
  if (verdict || verdict.error().code != errc::invalid_argument)
    return false;
  for (auto part : parts)
    if (verdict.error().message.find(part) == std::string::npos) {
      BOOST_TEST_MESSAGE(verdict.error().message);
      return false;
    }
  return true;
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec)

BOOST_AUTO_TEST_CASE(a_command_needs_a_program) {
  BOOST_TEST(bool{validate(command({"true"}))});
  BOOST_TEST(refused(command({}), {"argv", "0", "at least 1"}));
  BOOST_TEST(refused(command({""}), {"argv[0]"}));
}

BOOST_AUTO_TEST_CASE(an_element_without_bytes_is_fine_after_the_program) {
  BOOST_TEST(bool{validate(command({"echo", ""}))});
}

BOOST_AUTO_TEST_CASE(no_element_holds_nul) {
  BOOST_TEST(refused(command({"echo", std::string{"a\0b", 3}}), {"argv[1]", "a\\x00b", "NUL"}));
}

BOOST_AUTO_TEST_CASE(one_element_has_at_most_what_the_kernel_takes) {
  BOOST_TEST(bool{validate(command({"echo", std::string(131'071, 'x')}))});
  BOOST_TEST(
    refused(command({"echo", std::string(131'072, 'x')}), {"argv[1]", "131072", "131071"}));
}

BOOST_AUTO_TEST_CASE(argv_and_env_together_have_a_limit) {
  auto x = command({"echo"});
  for (int i = 0; i < 10; ++i) {
    x.argv.push_back(std::string(100'000, 'x'));
    x.env.emplace_back("v" + std::to_string(i), std::string(100'000, 'x'));
  }
  BOOST_TEST(bool{validate(x)});
  x.argv.push_back(std::string(100'000, 'x'));
  BOOST_TEST(refused(x, {"argv and env", "2097152"}));
}

BOOST_AUTO_TEST_CASE(variables_have_a_name_without_equals_sign_and_nul) {
  for (std::string name : {std::string{}, std::string{"a=b"}, std::string{"a\0", 2}}) {
    auto x = command({"true"});
    x.env.emplace_back(name, "value");
    BOOST_TEST(refused(x, {"env[0]", "name"}));
  }
  auto x = command({"true"});
  x.env.emplace_back("A", std::string{"\0", 1});
  BOOST_TEST(refused(x, {"env[0]", "\"A\"", "NUL"}));
}

BOOST_AUTO_TEST_CASE(the_working_directory_is_absolute_or_that_of_the_environment) {
  auto x = command({"true"});
  for (auto good : {"", "/", "/srv/a b"}) {
    x.cwd = good;
    BOOST_TEST(bool{validate(x)});
  }
  x.cwd = "work";
  BOOST_TEST(refused(x, {"cwd", "\"work\"", "absolute"}));
}

BOOST_AUTO_TEST_CASE(numbers_stay_in_their_range) {
  auto x = command({"true"});
  x.spool_bytes = (8u << 20) + 1;
  BOOST_TEST(refused(x, {"spool_bytes", "8388609", "8388608"}));
  x = command({"true"});
  x.deadline = std::chrono::milliseconds{-1};
  BOOST_TEST(refused(x, {"deadline", "-1"}));
  x = command({"true"});
  x.step = 1ull << 63;
  BOOST_TEST(refused(x, {"step", "9223372036854775808", "2^63"}));
  x.step = (1ull << 63) - 1;
  BOOST_TEST(bool{validate(x)});
}

BOOST_AUTO_TEST_CASE(requests_that_run_differently_have_different_digests) {
  std::vector<exec_spec> all;
  auto base = command({"a", "b"});
  all.push_back(base);
  all.push_back(command({"ab"}));
  all.push_back(command({"a", "b", ""}));
  all.push_back(command({"a"}));
  auto vary = [&](auto change) {
    auto x = base;
    change(x);
    all.push_back(x);
  };
  vary([](auto& x) { x.env = {{"n", "v"}}; });
  vary([](auto& x) { x.env = {{"nv", ""}}; });
  vary([](auto& x) { x.env = {{"n", "v"}, {"n", "v"}}; });
  vary([](auto& x) { x.cwd = "/w"; });
  vary([](auto& x) { x.user = "/w"; });
  vary([](auto& x) { x.stdin_bytes = ""; });
  vary([](auto& x) { x.stdin_bytes = "x"; });
  vary([](auto& x) { x.deadline = std::chrono::milliseconds{1}; });
  vary([](auto& x) { x.spool_bytes = 1; });
  std::set<std::string> digests;
  for (const auto& x : all) {
    BOOST_TEST(request_digest(x).size() == 64u);
    digests.insert(request_digest(x));
  }
  BOOST_TEST(digests.size() == all.size());
}

BOOST_AUTO_TEST_CASE(the_step_number_is_not_part_of_the_request) {
  auto x = command({"true"});
  auto before = request_digest(x);
  x.step = 7;
  BOOST_TEST(request_digest(x) == before);
}

BOOST_AUTO_TEST_CASE(a_digest_never_changes_between_versions) {
  // Recorded trajectories are compared with it: a new value makes every replay diverge.
  BOOST_TEST(request_digest(exec_spec::shell("make test"))
             == "a9a414ca3ea2b6c993e580ba44d4c1c0ae7f76a99f89c7a3808920d5b4d0dd85");
}

BOOST_AUTO_TEST_CASE(shell_runs_the_script_with_the_images_own_shell) {
  auto x = exec_spec::shell("echo hi; exit 3");
  BOOST_TEST(x.argv.size() == 3u);
  BOOST_TEST(x.argv[0] == "/bin/sh");
  BOOST_TEST(x.argv[1] == "-c");
  BOOST_TEST(x.argv[2] == "echo hi; exit 3");
}

BOOST_AUTO_TEST_CASE(every_outcome_has_a_name) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(outcome_kind_last); ++i)
    names.insert(to_string(static_cast<outcome_kind>(i)));
  BOOST_TEST(names.size() == static_cast<std::size_t>(outcome_kind_last) + 1);
  BOOST_TEST(!names.contains("unknown"));
}

BOOST_AUTO_TEST_SUITE_END()
