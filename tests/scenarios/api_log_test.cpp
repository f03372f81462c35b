// What our daemons write down is bounded, and no agent can make them write for ever.
#include "backends/spawner/journal.hpp"
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

std::uint64_t size_of(const fs::path& file) {
  std::error_code none;
  auto size = fs::file_size(file, none);
  return none ? 0 : size;
}

std::uint64_t logs_of(const fs::path& run_dir) {
  std::uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator{run_dir})
    if (entry.path().filename().string().starts_with("spawner.log"))
      sum += size_of(entry.path());
  return sum;
}

} // namespace

BOOST_AUTO_TEST_SUITE(api_log, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(the_spawners_log_never_holds_more_than_twice_its_bound) {
  auto folder = machine().root / "log";
  fs::create_directories(folder);
  spawner::journal log{folder / "spawner.log", false};
  const std::string text(1000, 'x');
  std::uint64_t written = 0, most = 0;
  while (written < 32ull << 20) {
    log.line("sandbox.ended", text);
    written += text.size();
    most = std::max(most, logs_of(folder));
  }
  BOOST_TEST(most > 4u << 20);
  BOOST_TEST(most < (8u << 20) + 4096);
  // The newest line is there, and so is what came just before.
  std::ifstream in{folder / "spawner.log"};
  std::string line;
  std::getline(in, line);
  BOOST_TEST(line.find("sandbox.ended " + text) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_agent_makes_our_log_longer_only_by_ending_its_sandbox) {
  auto& at = machine();
  auto rt = at.open(at.new_state());
  auto box = playground::one_sandbox(*rt, at.environment());
  auto before = logs_of(at.run_dir);
  auto floods = {"dd if=/dev/zero bs=1M count=64 2>/dev/null",
                 "i=0; while [ $i -lt 500 ]; do /no/such/program 2>/dev/null; i=$((i+1)); done",
                 "for i in $(seq 100); do sleep 0.1 & done; wait",
                 "dd if=/dev/zero of=/room/fill bs=1M 2>/dev/null; rm /room/fill",
                 "kill -9 $$",
                 "echo 0 > /proc/sysrq-trigger; echo 3 > /proc/sys/vm/drop_caches",
                 "for f in /proc/1/*; do cat $f > /dev/null; done 2>/dev/null"};
  for (std::size_t i = 0; i < at_size(3, 50); ++i)
    for (auto* flood : floods) {
      auto spec = exec_spec::shell(flood);
      spec.deadline = std::chrono::seconds{20};
      (void)box.exec(spec).get();
      (void)box.exec(exec_spec{{"/no/such/program"}}).get();
      (void)box.read("/no/such/file").get();
    }
  BOOST_TEST(logs_of(at.run_dir) == before);
  done(box.stop());
  BOOST_TEST(logs_of(at.run_dir) == before);
}

BOOST_AUTO_TEST_SUITE_END()
