#define BOOST_TEST_MODULE init_files
#include "backends/init/file_open.hpp"
#include "backends/init/init_server.hpp"
#include "tests/kernel/init/fixture.hpp"

#include <cerrno>
#include <fcntl.h>

using namespace dsec;
using namespace dsec::test;
using type = wire::FileStatus::Type;

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(possible))
BOOST_FIXTURE_TEST_SUITE(files, fixture)

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back) {
  std::string bytes;
  for (int i = 0; i < 3'000'000; ++i)
    bytes.push_back(static_cast<char>(i * 7 + i / 255));
  client.write_file("/tmp/big", bytes);
  BOOST_TEST((client.read_file("/tmp/big") == bytes));
  client.write_file("/tmp/big", "short");
  BOOST_TEST(client.read_file("/tmp/big") == "short");
}

BOOST_AUTO_TEST_CASE(files_belong_to_the_sandboxs_root) {
  client.write_file("/tmp/new/deep/file", "x", true);
  auto s = client.status("/tmp/new/deep/file");
  BOOST_TEST(s.type == type::REGULAR);
  BOOST_TEST(s.mode == 0644u);
  BOOST_TEST(s.uid == 0u);
  BOOST_TEST(s.gid == 0u);
  BOOST_TEST(s.size == 1u);
  BOOST_TEST(client.status("/tmp/new/deep").mode == 0755u);
  BOOST_TEST(client.run({"stat", "-c", "%u:%g", "/tmp/new/deep/file"}).out == "0:0\n");
}

BOOST_AUTO_TEST_CASE(files_of_other_users_are_within_reach) {
  run_options agent;
  agent.user = "agent";
  client.shell("umask 077; mkdir /tmp/own; echo secret > /tmp/own/file", agent);
  BOOST_TEST(client.read_file("/tmp/own/file") == "secret\n");
  BOOST_TEST(client.status("/tmp/own/file").uid == 1000u);
  BOOST_TEST(client.list("/tmp/own")["file"].gid == 1000u);
}

BOOST_AUTO_TEST_CASE(links_stay_inside_the_root) {
  client.shell("ln -s /../../../../etc/passwd /tmp/out; ln -s /proc/1/root/etc /tmp/magic;"
               "ln -s /etc/passwd /tmp/plain");
  const auto inside = client.read_file("/etc/passwd");
  BOOST_TEST(inside.find("agent:x:1000") != std::string::npos);
  BOOST_TEST(client.read_file("/tmp/out") == inside);
  BOOST_TEST(client.read_file("/tmp/plain") == inside);
  BOOST_TEST(client.read_file("/../../etc/passwd") == inside);
  BOOST_TEST(client.status("/tmp/plain").type == type::SYMLINK);
  error_of([&] { client.read_file("/tmp/magic/shadow"); });
}

BOOST_AUTO_TEST_CASE(a_fifo_is_refused_at_once) {
  client.shell("mkfifo /tmp/fifo; mkfifo /tmp/read; cat /tmp/read > /dev/null &");
  auto reading = error_of([&] { client.read_file("/tmp/fifo"); });
  BOOST_TEST((reading.code == errc::invalid_argument));
  auto writing = error_of([&] { client.write_file("/tmp/fifo", "x"); });
  BOOST_TEST((writing.code == errc::invalid_argument));
  auto with_reader = error_of([&] { client.write_file("/tmp/read", "x"); });
  BOOST_TEST((with_reader.code == errc::invalid_argument));
  BOOST_TEST(client.status("/tmp/fifo").type == type::OTHER);
}

BOOST_AUTO_TEST_CASE(a_file_that_says_it_has_no_bytes_is_read_with_those_it_has) {
  BOOST_TEST(client.read_file("/proc/version") == client.run({"cat", "/proc/version"}).out);
  BOOST_TEST(client.status("/proc/version").size == 0u);
  // This process's own /proc holds one that has no end.
  const kj::AutoCloseFd root{::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  init::file_request request;
  request.path = "/self/pagemap";
  const auto endless = init::open_in_root(request, root);
  BOOST_TEST(endless.status.number == EFBIG);
  const auto why = init::file_error(endless.status.number, "open", request.path);
  BOOST_TEST((why.code == errc::exhausted));
  BOOST_TEST(why.message
             == "open '/self/pagemap': it says that it has 0 bytes and has more than 33554432, "
                "which is the limit for such a file");
}

BOOST_AUTO_TEST_CASE(a_listing_tells_names_of_any_bytes_and_types) {
  const std::string odd = "od\xff\n d";
  client.shell("mkdir /tmp/l /tmp/l/sub; echo 123 > /tmp/l/file; ln -s file /tmp/l/link");
  client.write_file("/tmp/l/" + odd, "x");
  auto all = client.list("/tmp/l");
  BOOST_TEST(all.size() == 4u);
  BOOST_TEST(all["sub"].type == type::DIRECTORY);
  BOOST_TEST(all["link"].type == type::SYMLINK);
  BOOST_TEST(all["file"].size == 4u);
  BOOST_TEST(all.count(odd) == 1u);
}

BOOST_AUTO_TEST_CASE(a_large_directory_is_listed_whole) {
  client.shell("mkdir /tmp/many; cd /tmp/many; touch $(seq 3000)");
  BOOST_TEST(client.list("/tmp/many").size() == 3000u);
}

BOOST_AUTO_TEST_CASE(errors_name_the_path) {
  auto missing = error_of([&] { client.read_file("/tmp/none"); });
  BOOST_TEST((missing.code == errc::not_found));
  BOOST_TEST(missing.message.find("/tmp/none") != std::string::npos);
  auto relative = error_of([&] { client.read_file("tmp/none"); });
  BOOST_TEST((relative.code == errc::invalid_argument));
  auto directory = error_of([&] { client.read_file("/tmp"); });
  BOOST_TEST((directory.code == errc::invalid_argument));
  auto parents = error_of([&] { client.write_file("/tmp/x/y", "z", false); });
  BOOST_TEST((parents.code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_write_at_the_disk_limit_is_exhausted) {
  auto e = error_of([&] { client.write_file("/tmp/fill", std::string(64 << 20, 'x')); });
  BOOST_TEST((e.code == errc::exhausted));
}

BOOST_AUTO_TEST_CASE(files_answer_while_the_sandbox_is_paused) {
  client.write_file("/tmp/f", "x");
  client.pause();
  BOOST_TEST(client.read_file("/tmp/f") == "x");
  client.resume();
}

BOOST_AUTO_TEST_SUITE_END()
