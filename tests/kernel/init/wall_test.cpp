#define BOOST_TEST_MODULE init_wall
#include "tests/kernel/init/fixture.hpp"

#include <csignal>
#include <fstream>
#include <sstream>

using namespace dsec;
using namespace dsec::test;

namespace {

std::map<std::string, std::string> probe(init_client& client) {
  auto r = client.run({"wall_probe"});
  BOOST_TEST(r.kind == kind::EXITED);
  BOOST_TEST(r.code == 0);
  std::map<std::string, std::string> said;
  std::istringstream lines{r.out};
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.rfind(": ");
    said[line.substr(0, at)] = line.substr(at + 2);
  }
  return said;
}

std::string status_field(pid_t pid, const std::string& name) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name + ":", 0) == 0)
      return line.substr(line.find_last_of("\t ") + 1);
  return "";
}

} // namespace

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_FIXTURE_TEST_SUITE(wall, fixture)

BOOST_AUTO_TEST_CASE(root_inside_can_neither_look_into_pid_1_nor_touch_it) {
  auto said = probe(client);
  for (const char* path : {"mem", "environ", "exe", "fd", "root", "cwd", "maps", "fd/3"})
    BOOST_TEST_CONTEXT(path)
  BOOST_TEST(said["open /proc/1/" + std::string(path)] == "EACCES");
  BOOST_TEST(said["readlink exe"] == "EACCES");
  BOOST_TEST(said["ptrace seize"] == "EPERM");
  BOOST_TEST(said["ptrace attach"] == "EPERM");
  BOOST_TEST(said["process_vm_readv"] == "EPERM");
  BOOST_TEST(said["pidfd_getfd"] == "EPERM");
  BOOST_TEST(said["inherited"] == "0");
  // After SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGCHLD and a real-time signal to PID 1.
  BOOST_TEST(client.run({"echo", "alive"}).out == "alive\n");
}

BOOST_AUTO_TEST_CASE(root_inside_gets_nothing_dangerous_from_the_kernel) {
  auto said = probe(client);
  for (const char* refused : {"reboot", "mount", "umount", "unshare user", "unshare mount", "setns",
                              "clone user", "io_uring", "bpf", "keyctl", "FICLONE",
                              "FICLONE high bits", "FITRIM", "TIOCSTI", "personality", "clock"})
    BOOST_TEST_CONTEXT(refused)
  BOOST_TEST(said[refused] == "EPERM");
  // Its flags are out of a filter's sight: the kernel's own count of user namespaces forbids them.
  BOOST_TEST(said["clone3 user"] == "ENOSPC");
  BOOST_TEST(said["allow user namespaces"] == "EACCES");
  BOOST_TEST(said["clone3 mount"] == "EPERM");
  BOOST_TEST(said["copy_file_range"] == "ENOSYS");
  BOOST_TEST((said["mknod"] == "EACCES" || said["mknod"] == "EPERM"));
  BOOST_TEST((said["mknod block"] == "EACCES" || said["mknod block"] == "EPERM"));
  for (const char* family : {"vsock", "alg", "packet"})
    BOOST_TEST_CONTEXT(family)
  BOOST_TEST(said[family] == "EAFNOSUPPORT");
  BOOST_TEST(said["netfilter"] == "EPROTONOSUPPORT");
}

BOOST_AUTO_TEST_CASE(ordinary_work_is_untouched) {
  auto said = probe(client);
  for (const char* allowed : {"route", "inet", "rename across", "link across"})
    BOOST_TEST_CONTEXT(allowed)
  BOOST_TEST(said[allowed] == "ok");
}

BOOST_AUTO_TEST_CASE(the_agents_processes_hold_few_capabilities_and_may_gain_none) {
  auto r = client.shell("cat /proc/self/status");
  BOOST_TEST(r.out.find("NoNewPrivs:\t1") != std::string::npos);
  BOOST_TEST(r.out.find("CapBnd:\t00000000a00405fb") != std::string::npos);
  BOOST_TEST(r.out.find("CapEff:\t00000000a00405fb") != std::string::npos);
  BOOST_TEST(r.out.find("Seccomp:\t2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(dsec_init_itself_is_locked_down) {
  const auto pid = sandbox.supervisor();
  BOOST_TEST(client.run({"true"}).code == 0);
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    BOOST_TEST(status_field(pid, set) == "0000000000000000");
  BOOST_TEST(status_field(pid, "NoNewPrivs") == "1");
  BOOST_TEST(status_field(pid, "Seccomp") == "2");
  BOOST_TEST(status_field(pid, "Name") == "dsec-init");
  // Only SIGKILL and the protocol end it.
  ::kill(pid, SIGTERM);
  BOOST_TEST(client.run({"true"}).code == 0);
}

BOOST_AUTO_TEST_CASE(the_sandbox_ends_with_its_dsec_init) {
  client.start(1, {"sleep", "60"});
  const auto reaper = sandbox.reaper();
  ::kill(sandbox.supervisor(), SIGKILL);
  BOOST_TEST(sandbox.supervisor_ended(1000));
  bool gone = false;
  for (int i = 0; i < 200 && !gone; ++i) {
    gone = sandbox.payload_pids().empty() && ::kill(reaper, 0) != 0;
    io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
  }
  BOOST_TEST(gone);
}

BOOST_AUTO_TEST_SUITE_END()
