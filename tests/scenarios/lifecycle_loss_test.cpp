// A link that breaks, a supervisor that dies and a runtime that does are three different losses.
#include "tests/scenarios/clocks_rig.hpp"
#include "tests/scenarios/process_rig.hpp"
#include "tests/scenarios/supervisor.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <set>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

/// The connected stream sockets of this process: of a sandbox, and nothing else, each has one.
std::set<int> links() {
  std::set<int> all;
  for (const auto& entry : fs::directory_iterator{"/proc/self/fd"}) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_un peer{};
    socklen_t size = sizeof peer;
    int type = 0;
    socklen_t type_size = sizeof type;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0
        && peer.sun_family == AF_UNIX
        && ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM)
      all.insert(fd);
  }
  return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(lifecycle_loss, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_link_that_breaks_is_told_apart_from_a_supervisor_that_died, exec_rig) {
  for (std::size_t i = 0; i < at_size(3, 30); ++i)
    for (bool dies : {true, false}) {
      const auto before = links();
      auto box = create();
      auto link = links();
      for (int fd : before)
        link.erase(fd);
      BOOST_TEST_REQUIRE(link.size() == 1u);
      auto heard = std::make_shared<listener>();
      auto running = box.start(exec_spec::shell("echo begun; exec sleep 600"), heard);
      auto process = value(box.spawn(background("exec sleep 600")));
      auto waiting = process.wait();
      BOOST_TEST_REQUIRE(heard->hears("begun"));
      const auto supervisor = supervisor_of(at, box);
      if (dies)
        BOOST_TEST_REQUIRE(::kill(supervisor, SIGKILL) == 0);
      else
        BOOST_TEST_REQUIRE(::shutdown(*link.begin(), SHUT_RDWR) == 0);
      const auto says = dies ? std::string{"dsec-init is gone"}
                             : fmt::format("(pid {}, which lives) broke", supervisor);
      for (const auto& each : {value(running.result()).outcome, value(waiting).outcome}) {
        BOOST_TEST(to_string(each.kind) == "infrastructure");
        BOOST_TEST(each.cause.find(says) != std::string::npos, each.cause);
      }
      BOOST_TEST(bench::ask_until(bench::within(20s), 5ms, [&] {
        return value(box.info()).state == sandbox_state::terminated;
      }));
      auto end = value(box.info());
      BOOST_TEST(to_string(end.cause) == "infrastructure");
      BOOST_TEST(end.detail.find(says) != std::string::npos, end.detail);
      BOOST_TEST(::kill(supervisor, 0) == -1);
    }
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_AUTO_TEST_CASE(a_command_whose_runtime_dies_is_lost_with_it_and_a_step_can_be_asked_again) {
  served_node node;
  auto id = node.create({});
  BOOST_TEST_REQUIRE(bool(id), (id ? "" : id.error().message));
  auto run = [&](std::string options) {
    auto dsec = node.words({});
    std::string line = "exec";
    for (const auto& word : dsec)
      line += " " + word;
    return std::vector<std::string>{"/bin/sh", "-c",
                                    line + " exec " + options + " " + *id
                                      + " -- sh -c 'echo begun; sleep 600' 2>&1"};
  };
  child_process plain{run("")}, step{run("--step 1")};
  BOOST_TEST_REQUIRE(plain.line().value_or("") == "begun");
  BOOST_TEST_REQUIRE(step.line().value_or("") == "begun");
  node.kill();
  auto lost = plain.line().value_or("");
  BOOST_TEST(lost.starts_with("dsec: node_lost: the runtime is gone"), lost);
  BOOST_TEST(plain.wait() == 125);
  auto unknown = step.line().value_or("");
  BOOST_TEST(unknown.find("talk to the runtime") != std::string::npos, unknown);
  BOOST_TEST(unknown.find("node_lost") == std::string::npos, unknown);
  BOOST_TEST(step.wait() == 125);
  BOOST_TEST_REQUIRE(node.start());
  auto stop = node.find(*id).stopRequest();
  BOOST_TEST(bool(wait(node.at(), stop.send())));
  auto log = wait(node.at(), node.find(*id).logRequest().send());
  BOOST_TEST_REQUIRE(bool(log));
  BOOST_TEST(int(log->getSteps()[0].getResult().getOutcome().getKind())
             == int(outcome_kind::sandbox_stopped));
}

BOOST_AUTO_TEST_SUITE_END()
