// `dsec cp`: what a user at a terminal or in a pipeline sees.
#include "tests/scenarios/client_rig.hpp"
#include "tests/scenarios/tree_rig.hpp"

#include <csignal>
#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

/// A sandbox, and a folder of ours beside it.
struct copy_rig : client_rig {
  fs::path here = machine().new_state();
  std::string box = create();

  copy_rig() {
    fs::create_directories(here);
  }

  finished cp(const std::string& from, const std::string& to, const std::string& input = {}) const {
    return run({"cp", from, to}, input);
  }

  std::string inside(const std::string& path) const {
    return box + ":" + path;
  }

  std::string shell(const std::string& script) const {
    auto x = run({"exec", box, "--", "sh", "-c", script});
    BOOST_TEST(x.code == 0, x.err);
    return x.out;
  }
};

std::string content_of(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

bool has_open(pid_t pid, const std::string& begin_of_path) {
  std::error_code failed;
  for (const auto& each : fs::directory_iterator{fmt::format("/proc/{}/fd", pid), failed})
    if (fs::read_symlink(each.path(), failed).native().starts_with(begin_of_path))
      return true;
  return false;
}

} // namespace

BOOST_AUTO_TEST_SUITE(tree_client, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(cp_moves_files_of_any_size_and_trees_both_ways, copy_rig) {
  put_file(here / "up/sub/big", many_bytes(20 << 20));
  put_file(here / "up/\xe6\x97\xa5\xff", "odd name");
  fs::create_symlink("sub/big", here / "up/link");
  auto up = cp(here / "up", inside("/room"));
  BOOST_TEST(up.code == 0, up.err);
  BOOST_TEST(up.err == "");
  auto down = cp(inside("/room/up"), here / "down");
  BOOST_TEST(down.code == 0, down.err);
  BOOST_TEST(differences(describe_tree(here / "up"), describe_tree(here / "down")) == "");
  auto one = cp(inside("/room/up/sub/big"), here);
  BOOST_TEST(one.code == 0, one.err);
  BOOST_TEST(fs::file_size(here / "big") == 20u << 20);
}

BOOST_FIXTURE_TEST_CASE(cp_takes_an_archive_from_a_pipe_and_gives_one_to_a_pipe, copy_rig) {
  auto archive = crafted_archive{}.add('0', "a", "of a").add('5', "d").add('0', "d/b", "of b");
  auto in = cp("-", inside("/room/piped"), archive.bytes());
  BOOST_TEST(in.code == 0, in.err);
  BOOST_TEST(shell("cat /room/piped/a /room/piped/d/b") == "of aof b");
  auto out = cp(inside("/room/piped"), "-");
  BOOST_TEST(out.code == 0, out.err);
  auto list = run_program({"/bin/tar", "-tf", "-"}, out.out);
  BOOST_TEST(list.code == 0, list.err);
  BOOST_TEST(list.out.find("piped/d/b\n") != std::string::npos, list.out);
  auto torn = cp("-", inside("/room/torn"), archive.bytes().substr(0, 700));
  BOOST_TEST(torn.code == 125);
  BOOST_TEST(torn.err.starts_with("dsec: "), torn.err);
}

BOOST_FIXTURE_TEST_CASE(cp_tells_what_it_left_out_and_says_so_with_its_exit_code, copy_rig) {
  shell("mkdir /room/t && echo x > /room/t/file && mkfifo /room/t/pipe");
  auto down = cp(inside("/room/t"), here / "t");
  BOOST_TEST(down.code == 1);
  BOOST_TEST(down.err == "dsec: t/pipe: FIFO\n", down.err);
  BOOST_TEST(fs::exists(here / "t/file"));
  for (const auto& [from, to] : {std::pair{inside("/room/missing"), (here / "x").native()},
                                 {inside("/room/t/pipe"), (here / "x").native()},
                                 {(here / "missing").native(), inside("/x")},
                                 {(here / "t").native(), inside("/room/t/file")},
                                 {inside("/a"), inside("/b")},
                                 {(here / "t").native(), (here / "u").native()},
                                 {(here / "t").native(), "no-such:/room"}}) {
    auto failed = cp(from, to);
    BOOST_TEST(failed.code == 125, from << " to " << to);
    BOOST_TEST(failed.err.starts_with("dsec: "), failed.err);
  }
}

BOOST_FIXTURE_TEST_CASE(cp_copies_what_a_file_contains_that_says_it_has_no_bytes, copy_rig) {
  auto down = cp(inside("/proc/version"), here / "version");
  BOOST_TEST(down.code == 0, down.err);
  BOOST_TEST(content_of(here / "version") == shell("cat /proc/version"));
  auto up = cp("/proc/sys/kernel/ostype", inside("/room/type"));
  BOOST_TEST(up.code == 0, up.err);
  BOOST_TEST(shell("cat /room/type") == "Linux\n");
  auto piped = cp(inside("/proc/version"), "-");
  BOOST_TEST(run_program({"/bin/tar", "-xOf", "-"}, piped.out).out == shell("cat /proc/version"));
  // It has no end.
  auto endless = cp("/proc/self/pagemap", inside("/room/pages"));
  BOOST_TEST(endless.code == 125);
  BOOST_TEST(endless.err.starts_with("dsec: copy /proc/self/pagemap to "), endless.err);
  BOOST_TEST(endless.err.find("33554432") != std::string::npos, endless.err);
  BOOST_TEST(shell("ls /room") == "type\n");
}

BOOST_FIXTURE_TEST_CASE(names_from_inside_reach_the_terminal_without_what_it_obeys, copy_rig) {
  shell("mkdir /room/t && mkfifo \"$(printf "
        "'/room/t/\\033]0;owned\\007\\n\\302\\233\\377\\134caf\\303\\251')\"");
  auto down = cp(inside("/room/t"), here / "t");
  BOOST_TEST(down.code == 1);
  BOOST_TEST(down.err == "dsec: t/\\x1b]0;owned\\x07\\x0a\\xc2\\x9b\\xff\\x5ccaf\xc3\xa9: FIFO\n",
             down.err);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_is_killed_leaves_the_file_that_it_was_replacing, copy_rig) {
  shell("echo old > /room/file && head -c 40000000 /dev/urandom > /room/big");
  auto all =
    crafted_archive{}.add('0', "before", "x").add('0', "file", many_bytes(4 << 20)).bytes();
  auto fifo = here / "half";
  BOOST_TEST_REQUIRE(run_program({"/usr/bin/mkfifo", fifo}).code == 0);
  {
    std::string command;
    for (const auto& word : words({"cp", "-", inside("/room")}))
      command += "'" + word + "' ";
    child_process up{{"/bin/sh", "-c", "exec " + command + " <> " + fifo.native()}};
    std::ofstream{fifo, std::ios::binary} << all.substr(0, all.size() / 2);
    BOOST_TEST(shell("i=0; while [ ! -e /room/before ] && [ $i -lt 200 ]; do sleep 0.1; "
                     "i=$((i+1)); done; ls /room/before")
               == "/room/before\n");
    up.kill(SIGKILL);
    BOOST_TEST(up.wait() == 128 + SIGKILL);
  }
  BOOST_TEST(tree_tasks_end());
  BOOST_TEST(shell("cat /room/file; ls -A /room") == "old\nbefore\nbig\nfile\n");

  put_file(here / "down/big", "old");
  {
    std::vector<std::string> copying{"/bin/sh", "-c", "echo $$; exec \"$@\"", "sh"};
    for (auto& word : words({"cp", inside("/room/big"), here / "down"}))
      copying.push_back(std::move(word));
    child_process down{copying};
    auto pid = std::stoi(down.line().value_or("0"));
    // The file that is not there yet, among those that it has open.
    BOOST_TEST_REQUIRE(bench::ask_until(bench::within(20s), 0ms,
                                        [&] { return has_open(pid, (here / "down/#").native()); }));
    down.kill(SIGKILL);
    BOOST_TEST(down.wait() == 128 + SIGKILL);
  }
  BOOST_TEST(content_of(here / "down/big") == "old");
  BOOST_TEST(std::distance(fs::directory_iterator{here / "down"}, {}) == 1);
  BOOST_TEST(tree_tasks_end());
}

BOOST_FIXTURE_TEST_CASE(a_client_that_is_killed_leaves_nothing_running, copy_rig) {
  shell("head -c 30000000 /dev/zero > /room/big");
  {
    // Nobody reads what it writes.
    child_process down{words({"cp", inside("/room/big"), "-"})};
    BOOST_TEST(bench::ask_until(bench::within(10s), 10ms, [&] { return !tree_tasks().empty(); }));
    down.kill(SIGKILL);
    down.wait();
  }
  BOOST_TEST(tree_tasks_end());
  auto fifo = here / "endless";
  BOOST_TEST_REQUIRE(run_program({"/usr/bin/mkfifo", fifo}).code == 0);
  {
    std::string command;
    for (const auto& word : words({"cp", "-", inside("/room/up")}))
      command += "'" + word + "' ";
    child_process up{{"/bin/sh", "-c", "exec " + command + " <> " + fifo.native()}};
    BOOST_TEST(bench::ask_until(bench::within(10s), 10ms, [&] { return !tree_tasks().empty(); }));
    up.kill(SIGKILL);
    up.wait();
  }
  BOOST_TEST(tree_tasks_end());
  BOOST_TEST(shell("echo alive") == "alive\n");
}

BOOST_AUTO_TEST_SUITE_END()
