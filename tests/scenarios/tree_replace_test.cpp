// What an upload or a download replaces, when it breaks off: the old file, whole, and nothing else.
#include "tests/scenarios/tree_rig.hpp"

#include <csignal>
#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

/// Gives its bytes, and then nothing until the caller leaves.
class held_source final : public input_source {
public:
  explicit held_source(std::string bytes) : rest_{std::move(bytes)} {}

  void read(std::function<void(std::string)> next) override {
    std::scoped_lock lock{mutex_};
    auto piece = rest_.substr(0, 100'000);
    rest_.erase(0, piece.size());
    if (!piece.empty())
      next(std::move(piece));
    else if (!left_)
      held_ = std::move(next);
  }

  void leave() {
    std::function<void(std::string)> dropped;
    std::scoped_lock lock{mutex_};
    left_ = true;
    dropped = std::exchange(held_, nullptr);
  }

private:
  std::mutex mutex_;
  std::string rest_;
  std::function<void(std::string)> held_;
  bool left_ = false;
};

/// Half of an archive whose second file replaces one; "before" is there when that is under way.
std::string half() {
  auto all =
    crafted_archive{}.add('0', "before", "x").add('0', "file", many_bytes(4 << 20)).bytes();
  return all.substr(0, all.size() / 2);
}

struct replace_rig : tree_rig {
  replace_rig() {
    run("echo old > /room/file && chmod 640 /room/file");
  }

  bool is_under_way() const {
    return bench::ask_until(bench::within(20s), 10ms,
                            [&] { return bool(box.stat("/room/before").get()); });
  }

  void the_old_one_is_there() const {
    BOOST_TEST(tree_tasks_end());
    BOOST_TEST(value(box.read("/room/file")) == "old\n");
    BOOST_TEST(value(box.stat("/room/file")).mode == 0640u);
    std::set<std::string> names;
    for (const auto& entry : value(box.list("/room")))
      names.insert(entry.name);
    BOOST_TEST((names == std::set<std::string>{"before", "file"}));
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(tree_replace, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_caller_that_leaves_leaves_the_old_file, replace_rig) {
  auto source = std::make_shared<held_source>(half());
  auto up = box.unpack("/room", source);
  BOOST_TEST_REQUIRE(is_under_way());
  source->leave();
  BOOST_TEST(!up.get());
  the_old_one_is_there();
}

BOOST_FIXTURE_TEST_CASE(a_damaged_archive_leaves_the_old_file, replace_rig) {
  auto got = box.unpack("/room", source_of(half())).get();
  BOOST_TEST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::corrupt), got.error().message);
  the_old_one_is_there();
}

BOOST_FIXTURE_TEST_CASE(an_unpacker_that_is_killed_leaves_the_old_file, replace_rig) {
  auto source = std::make_shared<held_source>(half());
  auto up = box.unpack("/room", source);
  BOOST_TEST_REQUIRE(is_under_way());
  for (auto pid : tree_tasks())
    ::kill(pid, SIGKILL);
  auto got = up.get();
  BOOST_TEST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::unavailable), got.error().message);
  the_old_one_is_there();
}

BOOST_FIXTURE_TEST_CASE(a_full_disk_leaves_the_old_file_and_counts_both_until_then, exec_rig) {
  // 64 MiB of disk.
  auto box = create();
  auto here = at.new_state();
  const std::string old(40 << 20, 'o');
  done(box.write("/room/up/file", old));
  put_file(here / "up/file", many_bytes(40 << 20));
  auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : value(box.list("/room/up")))
      all.insert(entry.name);
    return all;
  };
  for (const auto& [from, to] :
       {std::pair{here / "up/.", "/room/up"}, {here / "up/file", "/room/up"}}) {
    auto got = box.upload(from, to).get();
    BOOST_TEST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::exhausted), got.error().message);
    BOOST_TEST((value(box.read("/room/up/file")) == old));
    BOOST_TEST((names() == std::set<std::string>{"file"}));
  }
  // What was begun takes no room any more.
  put_file(here / "up/file", many_bytes(10 << 20));
  BOOST_TEST(value(box.upload(here / "up/.", "/room/up")).refused_total == 0u);
  BOOST_TEST(value(box.stat("/room/up/file")).size == 10u << 20);
  fs::remove_all(here);
}

BOOST_FIXTURE_TEST_CASE(a_download_that_breaks_off_leaves_the_old_file, replace_rig) {
  fs::create_directories(here / "down");
  run("mkdir /room/t && head -c 100000000 /dev/zero > /room/t/file");
  auto to = here / "down";
  put_file(to / "file", "old");
  // The packer dies in the middle.
  auto down = box.download("/room/t/.", to);
  std::set<pid_t> killed;
  while (!down.ready())
    for (auto pid : tree_tasks())
      if (::kill(pid, SIGKILL) == 0)
        killed.insert(pid);
  auto got = down.get();
  BOOST_TEST_REQUIRE(!killed.empty());
  BOOST_TEST_REQUIRE(!got);
  std::ifstream in{to / "file"};
  BOOST_TEST((std::string{std::istreambuf_iterator<char>{in}, {}} == "old"));
  BOOST_TEST(std::distance(fs::directory_iterator{to}, {}) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
