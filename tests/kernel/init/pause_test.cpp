#define BOOST_TEST_MODULE init_pause
#include "tests/kernel/init/fixture.hpp"

#include <sys/swap.h>

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace dsec;
using namespace dsec::test;

namespace {

struct leased : fixture {
  leased() : fixture{{.pause_after_ms = 400, .stop_after_ms = 1200}} {}
};

bool machine_has_swap() {
  std::ifstream in("/proc/swaps");
  std::string header, first;
  return std::getline(in, header) && std::getline(in, first);
}

/// Swap of 256 MiB for one test, where the machine lets us have it.
struct temporary_swap {
  temporary_swap() {
    if (machine_has_swap())
      return;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
      return;
    std::string zeros(1 << 20, '\0');
    for (int i = 0; i < 256; ++i)
      if (::write(fd, zeros.data(), zeros.size()) < 0)
        break;
    // A swap header of version 1 for pages of 4 KiB.
    const std::uint32_t header[3] = {1, 256 * 256 - 1, 0};
    (void)!::pwrite(fd, header, sizeof header, 1024);
    (void)!::pwrite(fd, "SWAPSPACE2", 10, 4096 - 10);
    ::close(fd);
    on = ::swapon(path.c_str(), 0) == 0;
  }

  ~temporary_swap() {
    if (on)
      ::swapoff(path.c_str());
    std::filesystem::remove(path);
  }

  std::string path = "/tmp/dsec-init-test-swap-" + std::to_string(::getpid());
  bool on = false;
};

std::uint64_t elapsed_ms(std::chrono::steady_clock::time_point since) {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - since)
      .count());
}

} // namespace

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_AUTO_TEST_SUITE(pausing)

BOOST_FIXTURE_TEST_CASE(a_paused_sandbox_does_nothing_and_goes_on_where_it_was, fixture) {
  auto exec =
    client.start(1, {"sh", "-c", "i=0; while true; do i=$((i+1)); echo $i > /tmp/n; done"});
  while (true) {
    try {
      if (!client.read_file("/tmp/n").empty())
        break;
    } catch (const error&) {
    }
  }
  const auto took = client.pause();
  BOOST_TEST_MESSAGE("frozen in " << took << " us");
  BOOST_TEST(client.pause() == 0u);
  BOOST_TEST((client.entered().getHello().getPhase() == wire::Hello::Phase::PAUSED));
  const auto before = client.read_file("/tmp/n");
  io.provider->getTimer().afterDelay(100 * kj::MILLISECONDS).wait(io.waitScope);
  BOOST_TEST(client.read_file("/tmp/n") == before);
  auto refused = error_of([&] { client.run({"true"}); });
  BOOST_TEST((refused.code == errc::invalid_state));
  client.resume();
  client.resume();
  BOOST_TEST(client.run({"true"}).code == 0);
  exec.cancelRequest().send().wait(client.scope());
}

BOOST_FIXTURE_TEST_CASE(a_deadline_does_not_run_while_frozen, fixture) {
  run_options options;
  options.deadline_ms = 600;
  auto exec = client.start(1, {"sleep", "60"}, options);
  const auto began = std::chrono::steady_clock::now();
  client.pause();
  io.provider->getTimer().afterDelay(1000 * kj::MILLISECONDS).wait(io.waitScope);
  client.resume();
  auto r = client.wait(exec);
  BOOST_TEST(r.kind == kind::TIMED_OUT);
  BOOST_TEST(elapsed_ms(began) >= 1500u);
}

BOOST_FIXTURE_TEST_CASE(a_frozen_command_can_be_cancelled, fixture) {
  auto exec = client.start(1, {"sleep", "60"});
  client.pause();
  exec.cancelRequest().send().wait(client.scope());
  BOOST_TEST(client.wait(exec).kind == kind::CANCELLED);
}

BOOST_FIXTURE_TEST_CASE(reclaim_needs_a_pause_first, fixture) {
  auto e = error_of([&] { client.reclaim(); });
  BOOST_TEST((e.code == errc::invalid_state));
}

BOOST_FIXTURE_TEST_CASE(reclaimed_memory_comes_back_unchanged, fixture) {
  temporary_swap swap;
  if (!swap.on && !machine_has_swap()) {
    BOOST_TEST_MESSAGE("skipped: no swap can be set up here");
    return;
  }
  run_options options;
  options.has_stdin = true;
  auto exec = client.start(1, {"wall_probe", "hold", "64"}, options);
  std::string out, err;
  auto attach = exec.attachRequest();
  attach.setStdout(kj::heap<collecting_sink>(out));
  attach.setStderr(kj::heap<collecting_sink>(err));
  auto attached = attach.send();
  auto sink = exec.stdinRequest().send().wait(client.scope()).getSink();
  while (out.empty())
    io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
  client.pause();
  auto [before, after] = client.reclaim();
  BOOST_TEST_MESSAGE("reclaimed " << before << " -> " << after);
  BOOST_TEST(before > 60u << 20);
  BOOST_TEST(after < before / 20);
  BOOST_TEST((client.entered().getHello().getPhase() == wire::Hello::Phase::RECLAIMED));
  client.resume();
  auto write = sink.writeRequest();
  write.setBytes({reinterpret_cast<const kj::byte*>("\n"), 1});
  write.send().wait(client.scope());
  sink.endRequest().send().wait(client.scope());
  client.wait(exec);
  const auto line = out.substr(0, out.find('\n') + 1);
  BOOST_TEST(out == line + line);
}

BOOST_FIXTURE_TEST_CASE(reclaim_without_swap_is_exhausted, fixture) {
  if (machine_has_swap()) {
    BOOST_TEST_MESSAGE("skipped: this machine has swap");
    return;
  }
  run_options options;
  options.has_stdin = true;
  auto exec = client.start(1, {"wall_probe", "hold", "32"}, options);
  auto stats = [&] {
    return client.init().statsRequest().send().wait(client.scope());
  };
  while (stats().getStats().getMemoryBytes() < 32u << 20)
    io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
  client.pause();
  auto e = error_of([&] { client.reclaim(); });
  BOOST_TEST((e.code == errc::exhausted));
  BOOST_TEST(e.message.find("no swap") != std::string::npos);
  client.resume();
  exec.cancelRequest().send().wait(client.scope());
}

BOOST_FIXTURE_TEST_CASE(the_phase_that_a_new_node_is_told_is_not_an_older_nodes_to_change,
                        fixture) {
  for (std::uint64_t id = 1; id <= 4; ++id)
    client.start(id, {"sh", "-c", "while :; do :; done"});
  std::uint64_t epoch = 1;
  auto older = std::make_unique<init_client>(io, sandbox.socket_path(), ++epoch);
  for (int round = 0; round < 20; ++round) {
    auto pausing = older->init().pauseRequest().send();
    auto newer = std::make_unique<init_client>(io, sandbox.socket_path(), ++epoch);
    if (newer->entered().getHello().getPhase() == wire::Hello::Phase::PAUSED)
      newer->resume();
    newer->last_id = 100 * epoch;
    BOOST_TEST(newer->run({"true"}).code == 0);
    older = std::move(newer);
  }
}

BOOST_FIXTURE_TEST_CASE(an_expired_lease_pauses_and_then_ends_the_sandbox, leased) {
  auto exec = client.start(1, {"sleep", "60"});
  auto phase = [&] {
    return client.entered().getHello().getPhase();
  };
  for (int i = 0; i < 100 && phase() == wire::Hello::Phase::RUNNING; ++i)
    io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
  BOOST_TEST((phase() != wire::Hello::Phase::RUNNING));
  auto r = client.wait(exec);
  BOOST_TEST(r.kind == kind::SANDBOX_STOPPED);
  BOOST_TEST(sandbox.tombstone(2000).rfind("lease_expired\n", 0) == 0);
  BOOST_TEST(sandbox.supervisor_ended(3000));
  BOOST_TEST(sandbox.payload_empties(2000));
}

BOOST_FIXTURE_TEST_CASE(a_renewed_lease_does_not_expire, leased) {
  auto renew = client.init().renewRequest();
  renew.setPauseInMs(60'000);
  renew.setStopInMs(120'000);
  renew.send().wait(client.scope());
  io.provider->getTimer().afterDelay(1500 * kj::MILLISECONDS).wait(io.waitScope);
  BOOST_TEST((client.entered().getHello().getPhase() == wire::Hello::Phase::RUNNING));
  BOOST_TEST(client.run({"true"}).code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_new_node_starts_the_leases_time_anew, leased) {
  // Together several times as long as the lease, each well within it.
  for (std::uint64_t epoch = 2; epoch <= 12; ++epoch) {
    io.provider->getTimer().afterDelay(120 * kj::MILLISECONDS).wait(io.waitScope);
    init_client node{io, sandbox.socket_path(), epoch};
    BOOST_TEST((node.entered().getHello().getPhase() == wire::Hello::Phase::RUNNING));
  }
  // And no longer: nobody comes any more.
  BOOST_TEST(sandbox.tombstone(5000).rfind("lease_expired\n", 0) == 0);
}

BOOST_FIXTURE_TEST_CASE(stats_count_what_the_sandbox_uses, fixture) {
  client.shell("head -c 8000000 /dev/zero > /tmp/f");
  auto answer = client.init().statsRequest().send().wait(client.scope());
  auto s = answer.getStats();
  BOOST_TEST(s.getMemoryBytes() > 7u << 20);
  BOOST_TEST(s.getMemoryPeakBytes() >= s.getMemoryBytes());
  BOOST_TEST(s.getCpuUs() > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
