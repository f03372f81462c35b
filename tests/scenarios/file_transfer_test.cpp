// What is uploaded is there, whoever asks next, whatever its name is and whoever dies.
#include "state/digest.hpp"
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <set>

using namespace dsec;
using namespace dsec::test;
using namespace std::string_literals;
namespace utf = boost::unit_test;

namespace {

struct opened {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);
  sandbox box = playground::one_sandbox(*rt, at.environment());
};

std::string noise(std::size_t seed, std::size_t size) {
  std::minstd_rand draw{static_cast<unsigned>(seed) + 1};
  std::string bytes(size, '\0');
  for (auto& byte : bytes)
    byte = static_cast<char>(draw() >> 7);
  return bytes;
}

std::string digest(const std::string& bytes) {
  sha256 sum;
  sum.add(bytes);
  return std::move(sum).hex();
}

/// Names that broke headers, shells, listings or decoders elsewhere.
std::vector<std::string> odd_names() {
  return {"你好世界.txt",
          "日本語 テスト",
          "🦀🔥.bin",
          "e\u0301 and \u00e9",
          "it's \"quoted\"",
          "two\nlines\n",
          "\ttab and \r return",
          "-rf",
          "--",
          " leading and trailing ",
          "...",
          "back\\slash",
          "a;b&c|d>e$(f)`g`*?[h]",
          "%2e%2e%2F%00",
          "\x01\x1b[31m\x7f",
          "not utf-8 \xff\xfe\xc3\x28\x80",
          "\xed\xa0\x80 half a surrogate",
          std::string(255, 'x'),
          std::string(85 * 3, '\xe4')};
}

std::set<std::string> names_in(const sandbox& box, const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : value(box.list(folder)))
    names.insert(entry.name);
  return names;
}

} // namespace

BOOST_AUTO_TEST_SUITE(file_transfer, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_command_sees_every_byte_that_was_uploaded_before_it, opened) {
  const auto rounds = at_size(300, 2000);
  std::size_t stale = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    // A file that is new, and one that other bytes were in before.
    auto path = i % 2 ? "/room/same"s : fmt::format("/room/new{}", i);
    auto bytes = noise(i, i * 37 % 20'000);
    done(box.write(path, bytes));
    stale += value(box.exec(exec_spec{{"sha256sum", path}})).out.substr(0, 64) != digest(bytes);
  }
  BOOST_TEST(stale == 0u);
}

BOOST_FIXTURE_TEST_CASE(parallel_uploads_into_a_folder_that_is_not_there_yet_all_succeed, opened) {
  constexpr std::size_t files = 64;
  for (std::size_t round = 0; round < at_size(5, 50); ++round) {
    auto folder = fmt::format("/room/{}/a/b/c/d", round);
    std::vector<future<void>> written;
    for (std::size_t i = 0; i < files; ++i)
      written.push_back(box.write(fmt::format("{}/{}", folder, i), fmt::format("file {}", i)));
    for (const auto& each : written)
      done(each);
    BOOST_TEST_REQUIRE(value(box.list(folder)).size() == files);
    for (std::size_t i = 0; i < files; ++i)
      BOOST_TEST(value(box.read(fmt::format("{}/{}", folder, i))) == fmt::format("file {}", i));
  }
}

BOOST_FIXTURE_TEST_CASE(names_of_any_bytes_make_the_round_trip_unchanged, opened) {
  const auto names = odd_names();
  for (const auto& name : names) {
    done(box.write("/room/uploaded/" + name, "of " + name));
    exec_spec made{{"/bin/sh", "-c", "printf %s \"of $1\" > \"$1\"", "sh", "./" + name}};
    made.cwd = "/room/made";
    done(box.write("/room/made/.keep", ""));
    BOOST_TEST(value(box.exec(made)).ok());
  }
  const std::set<std::string> wanted{names.begin(), names.end()};
  auto made = names_in(box, "/room/made");
  made.erase(".keep");
  BOOST_TEST((names_in(box, "/room/uploaded") == wanted));
  BOOST_TEST((made == wanted));
  for (const auto& name : names) {
    BOOST_TEST_CONTEXT("name " << name) {
      BOOST_TEST(value(box.read("/room/uploaded/" + name)) == "of " + name);
      BOOST_TEST(value(box.read("/room/made/" + name)) == "of ./" + name);
      BOOST_TEST((value(box.stat("/room/made/" + name)).type == file_type::regular));
      // A command finds what was uploaded under the same bytes.
      BOOST_TEST(value(box.exec(exec_spec{{"cat", "/room/uploaded/" + name}})).out == "of " + name);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_file_that_says_it_has_no_bytes_is_read_with_those_it_has, opened) {
  auto seen = value(box.exec(exec_spec{{"cat", "/proc/version"}})).out;
  BOOST_TEST(value(box.read("/proc/version")) == seen);
  BOOST_TEST(value(box.read("/proc/sys/kernel/ostype")) == "Linux\n");
  auto too_long = box.read("/proc/version", 10).get();
  BOOST_TEST_REQUIRE(!too_long);
  BOOST_TEST((too_long.error().code == errc::exhausted), too_long.error().message);
}

BOOST_FIXTURE_TEST_CASE(a_name_that_no_file_can_have_is_refused_with_its_reason, opened) {
  auto refused = [&](const std::string& path) {
    auto x = box.write(path, "x").get();
    BOOST_TEST_REQUIRE(!x);
    BOOST_TEST((x.error().code == errc::invalid_argument), x.error().message);
    BOOST_TEST(!x.error().message.empty());
  };
  refused("/room/" + std::string(256, 'x'));
  refused("relative");
  refused("");
  refused("/room/nul\0byte"s);
  refused("/" + std::string(5000, 'p'));
  BOOST_TEST(value(box.list("/room")).empty());
}

BOOST_AUTO_TEST_CASE(bytes_that_nobody_synced_survive_reclaim_and_every_death_of_ours) {
  auto& at = machine();
  auto state = at.new_state();
  std::string id;
  {
    child_process trainer{
      {at.programs / "scenario_trainer", state, at.data_dir, at.run_dir, at.layer.str(), "write"}};
    id = trainer.line().value_or("");
    BOOST_TEST_REQUIRE(!id.empty());
    BOOST_TEST_REQUIRE(trainer.line().value_or("") == "written");
    trainer.kill(SIGKILL);
    trainer.wait();
  }
  auto spawner = demo::spawner_pid(installation_of(at));
  BOOST_TEST_REQUIRE(spawner > 0);
  ::kill(spawner, SIGKILL);
  BOOST_TEST_REQUIRE(bench::wait_for_end(spawner, bench::within(std::chrono::seconds{10})));
  auto rt = at.open(state);
  auto box = value(rt->find(sandbox_id{id}));
  auto whole = [&] {
    // The trainer wrote them: 4 MiB by a command and 4 MiB as an upload, the same bytes.
    auto sums = value(box.exec(exec_spec{{"sha256sum", "/room/by-command", "/room/by-upload"}}));
    auto of_upload = digest(value(box.read("/room/by-upload")));
    BOOST_TEST(value(box.stat("/room/by-command")).size == 4u << 20);
    BOOST_TEST(sums.out == fmt::format("{0}  /room/by-command\n{0}  /room/by-upload\n", of_upload));
  };
  whole();
  for (int cycle = 0; cycle < 3; ++cycle) {
    done(box.pause(true));
    done(box.resume());
    whole();
  }
  done(box.stop());
}

BOOST_AUTO_TEST_SUITE_END()
