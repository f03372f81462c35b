// What a sandbox is said to use is what its own processes use, never the machine's.
#include "tests/scenarios/clocks_rig.hpp"

#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::uint64_t mib = 1 << 20;

struct limited : clocks_rig {
  environment from = [this] {
    auto x = at.environment();
    x.limits.memory_bytes = 1024 * mib;
    x.limits.cpu_milli = 1000;
    x.limits.disk_bytes = 64 * mib;
    x.limits.processes = 50;
    return x;
  }();

  sandbox box = value(owner.create({from, {}, {}}));
};

} // namespace

BOOST_AUTO_TEST_SUITE(clocks_usage, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_burning_sandbox_shows_its_own_cpu_time_and_no_more_than_its_limit,
                        limited) {
  auto other = value(owner.create({from, {}, {}}));
  auto before = value(box.stats());
  auto began = std::chrono::steady_clock::now();
  // More of them than the machine may have cores.
  auto burn = exec_spec::shell("i=0; while [ $i -lt 4 ]; do timeout 2 sh -c 'while :; do :; done' &"
                               " i=$((i + 1)); done; wait");
  auto x = value(box.exec(burn));
  auto wall = std::chrono::steady_clock::now() - began;
  auto used = value(box.stats()).cpu - before.cpu;
  BOOST_TEST(x.ok(), x.err);
  // A quota is given out every 100 ms: one too many is all it can be over.
  BOOST_TEST((used <= wall + 200ms), used.count());
  BOOST_TEST((used >= 400ms), used.count());
  BOOST_TEST((value(other.stats()).cpu < 200ms));
}

BOOST_FIXTURE_TEST_CASE(memory_processes_and_disk_are_counted_as_its_own_beside_their_limits,
                        limited) {
  auto before = value(box.stats());
  BOOST_TEST(before.memory_limit_bytes == 1024 * mib);
  BOOST_TEST(before.cpu_limit_milli == 1000u);
  BOOST_TEST(before.disk_limit_bytes == 64 * mib);
  BOOST_TEST(before.processes_limit == 50u);
  BOOST_TEST(before.memory_bytes < 64 * mib);
  BOOST_TEST(before.disk_bytes < 4 * mib);
  auto written = value(box.exec(exec_spec::shell(
    "dd if=/dev/urandom of=/tmp/f bs=1M count=20 2>/dev/null; dd if=/dev/zero of=/dev/shm/m bs=1M "
    "count=100 2>/dev/null; sync; sleep 600 & sleep 600 & exit 0")));
  BOOST_TEST(written.ok());
  auto after = value(box.stats());
  BOOST_TEST(after.memory_bytes >= 100 * mib);
  BOOST_TEST(after.memory_bytes < 200 * mib);
  BOOST_TEST(after.memory_peak_bytes >= after.memory_bytes);
  BOOST_TEST(after.disk_bytes >= 20 * mib);
  BOOST_TEST(after.disk_bytes < 30 * mib);
  BOOST_TEST(after.processes == 2u);
  // What was removed is given back.
  BOOST_TEST(value(box.exec(exec_spec::shell("rm /tmp/f /dev/shm/m; sync"))).ok());
  auto last = value(box.stats());
  BOOST_TEST(last.memory_bytes < 64 * mib);
  BOOST_TEST(last.memory_peak_bytes >= 100 * mib);
  auto shown = nlohmann::json::parse(cli({"stats", box.id().str(), "--json"}).out);
  BOOST_TEST(shown["memory_limit_bytes"] == 1024 * mib);
  BOOST_TEST(shown["memory_peak_bytes"] == last.memory_peak_bytes);
  BOOST_TEST(cli({"stats", box.id().str()}).out.find("1.0 GiB") != std::string::npos);
}

/// docs/decisions/0011-proc-is-the-kernels.md
BOOST_FIXTURE_TEST_CASE(proc_inside_speaks_of_the_machine_as_is_said, limited) {
  std::ifstream host{"/proc/meminfo"};
  std::string first;
  std::getline(host, first);
  auto inside = value(box.exec(exec_spec::shell("head -n 1 /proc/meminfo; ls /sys")));
  BOOST_TEST(inside.out == first + "\n");
}

BOOST_AUTO_TEST_SUITE_END()
