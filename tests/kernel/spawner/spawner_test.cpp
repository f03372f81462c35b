#define BOOST_TEST_MODULE spawner

#include "state/error.hpp"
#include "tests/kernel/spawner/spawner_fixture.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace dsec;
using namespace dsec::test;

namespace fs = std::filesystem;

namespace {

struct running : spawner_fixture {
  running() {
    BOOST_REQUIRE_MESSAGE(start() == 0, said);
    client.emplace(run_dir);
  }

  ~running() {
    client.reset();
  }

  /// Creates a sandbox and returns the pid of its dsec-init.
  int make(const std::string& id) {
    auto made = client->create(fields(id));
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_REQUIRE_MESSAGE(made->code == 0, made->message);
    return client->list()->pids.at(id);
  }

  void refused(const create_fields& f, errc code, const std::string& words) {
    auto made = client->create(f);
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_TEST(made->code == static_cast<std::uint8_t>(code));
    BOOST_CHECK_MESSAGE(made->message.find(words) != std::string::npos,
                        made->message << " does not say " << words);
    BOOST_CHECK_MESSAGE(look().none(), look().text());
  }

  std::optional<spawner_client> client;
};

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

/// Writes zeros until it fails; returns how many bytes fit and leaves errno.
std::uint64_t fill(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  BOOST_TEST_REQUIRE(fd >= 0);
  std::vector<char> block(1 << 20, 7);
  std::uint64_t written = 0;
  ssize_t size;
  while ((size = ::write(fd, block.data(), block.size())) > 0 && written < (1ull << 30))
    written += static_cast<std::uint64_t>(size);
  int number = errno;
  ::close(fd);
  errno = number;
  return written;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(spawner, running)

BOOST_AUTO_TEST_CASE(a_created_sandbox_is_listed_and_a_destroyed_one_leaves_nothing) {
  BOOST_TEST(look().none());
  auto pid = make("s-1");
  BOOST_TEST(pid > 0);
  BOOST_TEST(fs::exists(run_dir + "/s-1.sock"));

  struct stat st {};

  BOOST_TEST(::stat((run_dir + "/s-1.sock").c_str(), &st) == 0);
  BOOST_TEST((st.st_mode & 0777) == 0600u);
  auto ended = client->destroy("s-1");
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST(ended->code == 0);
  BOOST_CHECK_MESSAGE(look().none(), look().text());
  BOOST_TEST(client->list()->pids.empty());
  BOOST_TEST(client->hello()->slots_used == 0u);
}

BOOST_AUTO_TEST_CASE(the_inside_shows_only_the_image_and_what_belongs_there) {
  auto pid = make("s-1");
  BOOST_TEST(text_of(inside(pid, "/etc/passwd")) == "root:x:0:0:root:/:/bin/sh\n");
  for (auto* path : {"/dev/null", "/dev/urandom", "/dev/pts/ptmx", "/dev/shm", "/dev/mqueue",
                     "/proc/self", "/proc/1"})
    BOOST_CHECK_MESSAGE(fs::exists(fs::symlink_status(inside(pid, path))), path);
  std::vector<std::string> names;
  for (auto& entry : fs::directory_iterator{inside(pid, "/")})
    names.push_back(entry.path().filename());
  BOOST_TEST(names.size() == 5u);

  struct stat st {};

  BOOST_TEST(::stat(inside(pid, "/etc/passwd").c_str(), &st) == 0);
  BOOST_TEST(st.st_uid >= 0x10000000u); // Root inside is nobody outside.
  auto mounts = text_of("/proc/" + std::to_string(reaper_of(pid)) + "/mountinfo");
  BOOST_CHECK_MESSAGE(mounts.find(folder.string()) == std::string::npos, mounts);
  for (auto* masked : {"/proc/kcore", "/proc/sysrq-trigger", "/proc/keys", "/proc/swaps",
                       "/proc/cmdline", "/proc/interrupts", "/proc/diskstats", "/proc/config.gz"})
    if (fs::exists(masked))
      BOOST_CHECK_MESSAGE(mounts.find(std::string{" "} + masked + " ") != std::string::npos,
                          masked);
}

BOOST_AUTO_TEST_CASE(namespaces_are_its_own_and_the_network_is_the_hosts_to_rule) {
  auto pid = make("s-1");
  auto reaper = "/proc/" + std::to_string(reaper_of(pid)) + "/ns/";
  for (auto* name : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"})
    BOOST_CHECK_MESSAGE(fs::read_symlink(reaper + name)
                          != fs::read_symlink(std::string{"/proc/self/ns/"} + name),
                        name);
  BOOST_TEST(fs::read_symlink("/proc/" + std::to_string(pid) + "/ns/net")
             == fs::read_symlink("/proc/self/ns/net"));
}

BOOST_AUTO_TEST_CASE(limits_are_in_the_groups) {
  auto f = fields("s-1");
  f.cpu_milli = 250;
  BOOST_TEST(client->create(f)->code == 0);
  auto root = client->hello()->cgroup_root;
  auto pure = !fs::exists("/sys/fs/cgroup/memory/" + root);
  auto v2 = "/sys/fs/cgroup/" + root + "/_0/payload/";
  auto v1 = [&](const char* controller) {
    return std::string{"/sys/fs/cgroup/"} + controller + '/' + root + "/_0/";
  };
  auto memory = std::to_string(f.memory_bytes) + '\n';
  BOOST_TEST(text_of(pure ? v2 + "memory.max" : v1("memory") + "memory.limit_in_bytes") == memory);
  BOOST_TEST(text_of(pure ? v2 + "memory.swap.max" : v1("memory") + "memory.memsw.limit_in_bytes")
             == (pure ? "0\n" : memory));
  BOOST_TEST(text_of(pure ? v2 + "pids.max" : v1("pids") + "pids.max") == "64\n");
  BOOST_TEST(text_of(pure ? v2 + "cpu.max" : v1("cpu") + "cpu.cfs_quota_us")
             == (pure ? "25000 100000\n" : "25000\n"));
}

BOOST_AUTO_TEST_CASE(the_disk_limit_holds_through_the_overlay) {
  auto pid = make("s-1");
  auto written = fill(inside(pid, "/tmp/big"));
  BOOST_TEST(errno == EDQUOT);
  BOOST_TEST(written > 8u << 20);
  BOOST_TEST(written <= 16u << 20);
}

BOOST_AUTO_TEST_CASE(the_smallest_limits_make_a_sandbox) {
  auto f = fields("s-1");
  f.memory_bytes = 8 << 20;
  f.processes = 4;
  f.cpu_milli = 10;
  f.disk_bytes = 1 << 20;
  auto made = client->create(f);
  BOOST_CHECK_MESSAGE(made->code == 0, made->message);
}

BOOST_AUTO_TEST_CASE(creating_a_live_id_again_answers_at_once_with_the_same_sandbox) {
  auto pid = make("s-1");
  BOOST_TEST(make("s-1") == pid);
  auto first = client->send_create(fields("s-2"));
  auto second = client->send_create(fields("s-2"));
  BOOST_TEST(client->wait_for(first)->code == 0);
  BOOST_TEST(client->wait_for(second)->code == 0);
  BOOST_TEST(client->list()->pids.size() == 2u);
}

BOOST_AUTO_TEST_CASE(destroying_twice_or_what_never_was_is_fine) {
  make("s-1");
  auto first = client->send_destroy("s-1");
  auto second = client->send_destroy("s-1");
  BOOST_TEST(client->wait_for(first)->code == 0);
  BOOST_TEST(client->wait_for(second)->code == 0);
  BOOST_TEST(client->destroy("s-1")->code == 0);
  BOOST_TEST(client->destroy("never-was")->code == 0);
}

BOOST_AUTO_TEST_CASE(a_create_after_a_destroy_in_flight_makes_a_new_one) {
  auto pid = make("s-1");
  auto destroyed = client->send_destroy("s-1");
  auto created = client->send_create(fields("s-1"));
  BOOST_TEST(client->wait_for(destroyed)->code == 0);
  BOOST_TEST(client->wait_for(created)->code == 0);
  BOOST_TEST(client->list()->pids.at("s-1") != pid);
}

BOOST_AUTO_TEST_CASE(a_destroy_in_the_middle_of_a_create_wins) {
  auto created = client->send_create(fields("s-1"));
  auto destroyed = client->send_destroy("s-1");
  BOOST_TEST(client->wait_for(destroyed)->code == 0);
  auto answered = client->wait_for(created);
  BOOST_TEST_REQUIRE(answered.has_value());
  BOOST_TEST((answered->code == 0 || answered->code == static_cast<int>(errc::invalid_state)));
  BOOST_CHECK_MESSAGE(look().none(), look().text());
}

BOOST_AUTO_TEST_CASE(fifty_at_once_come_up_and_go_without_a_trace) {
  std::vector<std::uint64_t> asked;
  for (int i = 0; i < 50; ++i)
    asked.push_back(client->send_create(fields("s-" + std::to_string(i))));
  for (auto sequence : asked) {
    auto made = client->wait_for(sequence);
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_REQUIRE_MESSAGE(made->code == 0, made->message);
  }
  BOOST_TEST(client->list()->pids.size() == 50u);
  BOOST_TEST(client->hello()->slots_used == 50u);
  asked.clear();
  for (int i = 0; i < 50; ++i)
    asked.push_back(client->send_destroy("s-" + std::to_string(i)));
  for (auto sequence : asked)
    BOOST_TEST(client->wait_for(sequence)->code == 0);
  BOOST_CHECK_MESSAGE(look().none(), look().text());
}

BOOST_AUTO_TEST_CASE(bad_fields_are_named_with_value_and_limit) {
  auto bad = errc::invalid_argument;
  for (auto* id :
       {"", "S-1", "a/b", "..", "spawner", "0123456789012345678901234567890123456789x"}) {
    auto f = fields(id);
    refused(f, bad, "sandboxId: '" + std::string{id});
  }
  for (auto& digest :
       {std::string{"sha256-xyz"}, "../" + layer, "sha512-" + std::string(64, 'a')}) {
    auto f = fields("s-1");
    f.layers = {digest};
    refused(f, bad, "layers: '" + digest);
  }
  auto f = fields("s-1");
  f.layers = {};
  refused(f, bad, "layers: 0 is not 1 to 200");
  f = fields("s-1");
  f.layers = {layer, layer};
  refused(f, bad, "named once");
  f = fields("s-1");
  f.memory_bytes = 8'388'607;
  refused(f, bad, "memoryBytes: 8388607 is not 8388608 to");
  f = fields("s-1");
  f.processes = 3;
  refused(f, bad, "processes: 3 is not 4 to 30000");
  f = fields("s-1");
  f.cpu_milli = 9;
  refused(f, bad, "cpuMilli: 9 is not 10 to");
  f = fields("s-1");
  f.disk_bytes = 1;
  refused(f, bad, "diskBytes: 1 is not 1048576 to");
  f = fields("s-1");
  f.hostname = "a b";
  refused(f, bad, "hostname: 'a b'");
  BOOST_TEST(client->destroy("../x")->code == static_cast<int>(bad));
}

BOOST_AUTO_TEST_CASE(a_layer_that_the_store_lacks_is_not_found_by_its_digest) {
  auto f = fields("s-1");
  auto missing = "sha256-" + std::string(64, 'b');
  f.layers = {layer, missing};
  refused(f, errc::not_found, missing);
}

BOOST_AUTO_TEST_CASE(a_layer_that_is_no_image_is_corrupt) {
  auto f = fields("s-1");
  auto broken = "sha256-" + std::string(64, 'c');
  fs::create_directories(data_dir + "/store/" + broken);
  std::ofstream{data_dir + "/store/" + broken + "/layer.erofs"} << std::string(8192, 'x');
  f.layers = {broken};
  refused(f, errc::corrupt, broken);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_request_end_that_connection_only) {
  for (auto& bytes : {std::string{"hello"}, std::string(64, '\xff'), std::string(4096, '\0')}) {
    spawner_client other{run_dir};
    other.send_bytes(bytes);
    BOOST_TEST(!other.hello().has_value());
  }
  BOOST_TEST(client->hello().has_value());
}

BOOST_AUTO_TEST_CASE(hello_tells_the_build_and_the_group) {
  auto hello = client->hello();
  BOOST_TEST(hello->version.size() == 40u);
  BOOST_TEST(fs::exists("/sys/fs/cgroup/unified/" + hello->cgroup_root)
             != fs::exists("/sys/fs/cgroup/" + hello->cgroup_root));
}

BOOST_AUTO_TEST_CASE(warm_answers_when_the_pool_is_full) {
  BOOST_TEST(client->warm(20)->code == 0);
  int networks = 0;
  auto fds = "/proc/" + std::to_string(spawner_pid()) + "/fd";
  for (auto& entry : fs::directory_iterator{fds})
    networks += fs::read_symlink(entry.path()).string().starts_with("net:");
  BOOST_TEST(networks >= 20);
}

BOOST_AUTO_TEST_CASE(shutdown_is_refused_while_a_sandbox_lives) {
  make("s-1");
  auto refused_answer = client->shutdown();
  BOOST_TEST(refused_answer->code == static_cast<int>(errc::invalid_state));
  BOOST_TEST(client->destroy("s-1")->code == 0);
  BOOST_TEST(client->shutdown()->code == 0);
  BOOST_TEST(!client->hello().has_value());
  BOOST_TEST(!fs::exists(run_dir + "/spawner.sock"));
  BOOST_TEST(text_of("/proc/self/mountinfo").find(run_dir) == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_second_spawner_on_the_same_directory_is_refused_with_the_pid) {
  auto pid = std::to_string(spawner_pid());
  BOOST_TEST(start() == 1);
  BOOST_CHECK_MESSAGE(said.find(pid) != std::string::npos, said);
  BOOST_TEST(client->hello().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
