// What has no business in a tree is left out, told, and never fatal: by the same rule both ways.
#include "backends/tree/extract.hpp"
#include "tests/scenarios/tree_rig.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <fcntl.h>
#include <fstream>
#include <unistd.h>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

/// A folder of the host that nothing may reach.
struct guarded : tree_rig {
  fs::path outside = here / "outside";

  guarded() {
    put_file(outside / "canary", "of the host");
  }

  ~guarded() {
    std::ifstream in{outside / "canary"};
    BOOST_TEST((std::string{std::istreambuf_iterator<char>{in}, {}} == "of the host"));
    BOOST_TEST(std::distance(fs::directory_iterator{outside}, {}) == 1);

    struct stat s {};

    BOOST_TEST(::stat((outside / "canary").c_str(), &s) == 0);
    BOOST_TEST(s.st_nlink == 1u);
  }

  running_exec turn(const std::string& body) {
    run("mkfifo /room/turning");
    auto loop = box.start(exec_spec::shell(
      fmt::format("{0}\necho > /room/turning\nwhile :; do {0}\ndone 2>/dev/null", body)));
    run("read x < /room/turning; rm /room/turning");
    return loop;
  }
};

/// Everything that a strict unpacker refuses, between files that it must not lose.
std::string corpus(const std::string& canary) {
  crafted_archive x;
  x.add('0', "first", "kept")
    .add('0', "../climbs", "x")
    .add('0', "a/../../climbs", "x")
    .add('0', "/tmp/absolute", "x")
    .add('2', "link", "", fs::path{canary}.parent_path().native())
    .add('0', "link/planted", "x")
    .add('5', "link/folder", "")
    .add('2', "inner", "", "first")
    .add('0', "inner/below a file", "x")
    .add('2', "chain", "", "link")
    .add('0', "chain/planted", "x")
    .add('1', "hard", "", "../../../../" + canary)
    .add('1', "hard absolute", "", canary)
    .add('1', "hard through", "", "link/canary")
    .add('1', "hard to nothing", "", "missing")
    .add('1', "hard link", "", "first")
    .add('3', "character", "")
    .add('4', "block", "")
    .add('6', "pipe", "")
    .add('0', "setuid", "x", "", 04755)
    .add('0', "setgid", "x", "", 02755)
    .add('0', std::string(99, 'n') + "/", "x")
    .add('2', "empty link", "", "")
    .add('5', "folder", "", "", 01777)
    .add('0', "folder", "x")
    .add('5', "first", "")
    .add('0', "last", "kept");
  return x.bytes();
}

std::set<std::string> keys_of(const std::map<std::string, std::string>& from) {
  std::set<std::string> keys;
  for (const auto& [key, _] : from)
    keys.insert(key);
  return keys;
}

} // namespace

BOOST_AUTO_TEST_SUITE(tree_refusal, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(an_archive_of_tricks_is_unpacked_without_them_inside_and_outside, guarded) {
  auto archive = corpus((outside / "canary").native());
  // Once more: what the first has left may help the second.
  result<tree_report> inside = error{};
  for (int round = 0; round < 2; ++round) {
    inside = box.unpack("/room/in", source_of(archive)).get();
    BOOST_TEST_REQUIRE(bool(inside), (inside ? "" : inside.error().message));
  }
  auto told = refusals_of(*inside);
  for (auto* name : {"../climbs", "a/../../climbs", "/tmp/absolute", "link/planted", "link/folder",
                     "inner/below a file", "chain/planted", "hard", "hard absolute", "hard through",
                     "hard to nothing", "character", "block", "pipe", "setuid", "setgid",
                     "empty link", "folder", "first"})
    BOOST_TEST(told.contains(name), name);
  BOOST_TEST(told.size() == inside->refused_total);
  BOOST_TEST(value(box.read("/room/in/first")) == "kept");
  BOOST_TEST(value(box.read("/room/in/last")) == "kept");
  BOOST_TEST(value(box.read("/room/in/hard link")) == "kept");
  BOOST_TEST(value(box.stat("/room/in/setuid")).mode == 0755u);
  BOOST_TEST(value(box.stat("/room/in/setgid")).mode == 0755u);
  BOOST_TEST(value(box.stat("/room/in/folder")).mode == 01777u);
  BOOST_TEST((value(box.stat("/room/in/link")).type == file_type::symlink));
  for (auto* name : {"/room/climbs", "/climbs", "/tmp/absolute", "/room/in/pipe",
                     "/room/in/character", "/room/in/hard", "/room/in/hard absolute"})
    BOOST_TEST(!box.stat(name).get(), name);

  // The same on this side.
  fs::create_directories(here / "out");
  int root = ::open((here / "out").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(root >= 0);
  std::set<std::string> here_told;
  for (int round = 0; round < 2; ++round) {
    struct memory final : archive_source {
      std::string rest;

      result<std::string_view> read() override {
        held = std::exchange(rest, {});
        return std::string_view{held};
      }

      std::string held;
    } from;

    from.rest = archive;
    here_told.clear();
    tree_report done;
    auto ok = extract_archive(
      from, root, {}, "here",
      [&](std::string_view path, std::string_view) { here_told.emplace(path); }, done);
    BOOST_TEST_REQUIRE(bool(ok), (ok ? "" : ok.error().message));
  }
  ::close(root);
  BOOST_TEST((here_told == keys_of(told)));
  value(box.download("/room/in/.", here / "down"));
  BOOST_TEST(differences(describe_tree(here / "out", false), describe_tree(here / "down", false))
             == "");
  BOOST_TEST(!fs::exists(here / "climbs"));
}

BOOST_FIXTURE_TEST_CASE(what_an_agent_plants_does_not_come_down_and_links_stay_links, guarded) {
  run(fmt::format("mkdir -p /room/t/sub && cd /room/t && echo kept > file && mkfifo pipe"
                  " && ln -s {0} absolute && ln -s ../../../../../..{0} climbing && ln -s / root"
                  " && ln -s loop loop && cp /bin/busybox setuid && chmod 6755 setuid"
                  " && chmod 2775 sub && ln file sub/second",
                  outside.native()));
  auto got = value(box.download("/room/t", here / "down"));
  auto told = refusals_of(got);
  BOOST_TEST((keys_of(told) == std::set<std::string>{"t/pipe", "t/setuid", "t/sub"}));
  BOOST_TEST(told["t/pipe"] == "FIFO");
  BOOST_TEST(fs::read_symlink(here / "down/absolute") == outside);
  BOOST_TEST(fs::is_symlink(here / "down/root"));
  auto bits = fs::status(here / "down/setuid").permissions();
  BOOST_TEST(((bits & fs::perms::set_uid) == fs::perms::none));
  BOOST_TEST(fs::hard_link_count(here / "down/file") == 2u);
  // Once more over it: nothing is written through what lies there now.
  run(fmt::format("cd /room/t && rm absolute climbing && mkdir absolute climbing"
                  " && echo through > absolute/canary && echo through > climbing/canary"));
  auto again = refusals_of(value(box.download("/room/t/.", here / "down")));
  for (auto* name : {"absolute", "absolute/canary", "climbing", "climbing/canary"})
    BOOST_TEST(again.contains(name), name);
  BOOST_TEST(fs::is_symlink(here / "down/absolute"));
}

BOOST_FIXTURE_TEST_CASE(the_same_on_the_way_up, guarded) {
  auto up = here / "up";
  put_file(up / "file", "kept");
  BOOST_TEST_REQUIRE(::mkfifo((up / "pipe").c_str(), 0644) == 0);
  BOOST_TEST_REQUIRE(::mknod((up / "device").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto name = (up / "s").native();
  BOOST_TEST_REQUIRE(name.size() < sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_TEST_REQUIRE(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::close(listening);
  put_file(up / "setuid", "x", 04755);
  fs::create_symlink(outside, up / "link");
  auto got = value(box.upload(up, "/room/up"));
  BOOST_TEST((keys_of(refusals_of(got))
              == std::set<std::string>{"up/pipe", "up/device", "up/s", "up/setuid"}));
  BOOST_TEST((value(box.stat("/room/up/link")).type == file_type::symlink));
  BOOST_TEST(value(box.stat("/room/up/setuid")).mode == 0755u);
  BOOST_TEST(!box.stat("/room/up/pipe").get());
  // By itself it is no copy at all.
  for (auto* each : {"pipe", "device", "s"}) {
    auto one = box.upload(up / each, "/room/one").get();
    BOOST_TEST_REQUIRE(!one);
    BOOST_TEST((one.error().code == errc::invalid_argument), one.error().message);
  }
}

BOOST_FIXTURE_TEST_CASE(a_fifo_or_device_that_is_asked_for_is_told_and_hangs_nobody, guarded) {
  run("mkfifo /room/pipe");
  for (auto* path : {"/room/pipe", "/dev/null", "/dev/zero"}) {
    auto got = box.download(path, here / "down").get();
    BOOST_TEST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::invalid_argument), got.error().message);
    auto packed = box.pack(path, std::make_shared<memory_archive>()).get();
    BOOST_TEST_REQUIRE(!packed);
    BOOST_TEST((packed.error().code == errc::invalid_argument), packed.error().message);
    BOOST_TEST(!fs::exists(here / "down"));
  }
}

BOOST_FIXTURE_TEST_CASE(a_file_that_grows_while_it_is_read_is_cut_and_told, guarded) {
  run("mkdir /room/t && head -c 8000000 /dev/zero > /room/t/growing");
  auto loop = turn("head -c 1000 /dev/zero >> /room/t/growing");
  std::size_t told = 0;
  for (std::size_t i = 0; i < at_size(10, 100) && told == 0; ++i) {
    auto got = value(box.download("/room/t", here / fmt::format("down{}", i)));
    BOOST_TEST(got.entries == 2u);
    told += refusals_of(got).contains("t/growing");
    BOOST_TEST(got.bytes == fs::file_size(here / fmt::format("down{}", i) / "growing"));
  }
  BOOST_TEST(told > 0u);
  loop.cancel();
  value(loop.result());
}

BOOST_FIXTURE_TEST_CASE(folders_that_turn_into_links_during_copies_let_nothing_out, guarded) {
  put_file(here / "up/in/canary", "from the host");
  put_file(here / "up/in/more", "from the host");
  auto loop = turn(fmt::format(
    "rm -rf /room/up/in; ln -s {0} /room/up/in; rm -f /room/up/in; mkdir -p /room/up/in;"
    " mv /room/up /room/gone; ln -s {0} /room/up; rm -f /room/up; rm -rf /room/gone",
    outside.native()));
  std::size_t up = 0, down = 0;
  for (std::size_t i = 0; i < at_size(75, 500); ++i) {
    auto upload = box.upload(here / "up/.", "/room/up").get();
    auto to = here / fmt::format("down{}", i);
    auto download = box.download("/room/up", to).get();
    for (auto* x : {&upload, &download})
      if (!*x) {
        auto code = x->error().code;
        BOOST_TEST((code == errc::not_found || code == errc::invalid_argument
                    || code == errc::exhausted),
                   to_string(code) << ": " << x->error().message);
      }
    up += bool(upload);
    down += bool(download);
    // A host file's bytes would be an escape by reading. A link is only a link.
    if (!fs::is_symlink(to) && !fs::is_symlink(to / "in")) {
      std::ifstream seen{to / "in/canary"};
      BOOST_TEST_REQUIRE((std::string{std::istreambuf_iterator<char>{seen}, {}} != "of the host"));
    }
    fs::remove_all(to);
  }
  BOOST_TEST_MESSAGE(up << " uploads and " << down << " downloads found a folder");
  loop.cancel();
  value(loop.result());
}

BOOST_AUTO_TEST_SUITE_END()
