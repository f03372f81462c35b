// A whole tree goes up and comes down again: every name, byte, hole, link, mode and time of it.
#include "tests/scenarios/tree_rig.hpp"

#include <sys/stat.h>

#include <fcntl.h>
#include <fstream>
#include <unistd.h>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

void set_time(const fs::path& path, std::int64_t seconds, long nanoseconds) {
  const timespec times[] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
  BOOST_TEST_REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

/// Data at both ends of a hole, and a hole at the end.
void put_sparse(const fs::path& path, off_t size) {
  put_file(path, "begin");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(fd >= 0);
  BOOST_TEST(::pwrite(fd, "middle", 6, size / 2) == 6);
  BOOST_TEST(::ftruncate(fd, size) == 0);
  ::close(fd);
}

std::vector<std::string> odd_names() {
  return {"你好世界.txt",
          "日本語 テスト",
          "🦀🔥.bin",
          "e\u0301 decomposed",
          "\u00e9 composed",
          "two\nlines\n",
          "-rf",
          " leading and trailing ",
          "...",
          "back\\slash",
          "a;b&c|d>e$(f)`g`*?[h]",
          "\x01\x1b[31m\x7f",
          "not utf-8 \xff\xfe\xc3\x28\x80",
          "a pair of surrogates \xed\xa0\x81\xed\xb0\x80",
          "\xed\xa0\x80 half a surrogate",
          std::string(255, 'x'),
          std::string(85 * 3, '\xe4')};
}

/// About `entries` files and directories, three levels deep, of every kind that a tree may hold.
void put_tree(const fs::path& root, std::size_t entries) {
  std::size_t number = 0;
  const auto names = odd_names();
  for (std::size_t folder = 0; number < entries; ++folder) {
    auto in = root / fmt::format("{}", folder % 10) / fmt::format("folder {}", folder);
    fs::create_directories(in);
    for (const auto& name : names) {
      put_file(in / name, many_bytes(number % 97 == 0 ? 100'000 : number % 700),
               static_cast<mode_t>(0400 + number % 0400));
      set_time(in / name, 1'000'000'000 + static_cast<std::int64_t>(number),
               static_cast<long>(number * 1'234'567 % 1'000'000'000));
      ++number;
    }
    fs::create_symlink(names[folder % names.size()], in / "link");
    fs::create_symlink("../../../../../etc/passwd", in / "link out");
    set_time(in / "link", 999'999'999, 7);
    fs::create_hard_link(in / names[0], in / "second name");
    fs::create_directory(in / "nothing in it");
    ::chmod((in / "nothing in it").c_str(), 01777);
    number += 5;
  }
  put_sparse(root / "sparse", 256 << 20);
  ::truncate((put_file(root / "one hole", ""), root / "one hole").c_str(), 10 << 20);
  // Of the directories too, last: what is put into one changes its time.
  std::vector<fs::path> folders;
  for (const auto& each : fs::recursive_directory_iterator{root})
    if (each.is_directory() && !each.is_symlink())
      folders.push_back(each.path());
  for (const auto& each : folders)
    set_time(each, 900'000'000, 123'456'789);
}

} // namespace

BOOST_AUTO_TEST_SUITE(tree_round_trip, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(ten_thousand_entries_come_back_as_they_went, tree_rig) {
  put_tree(here / "up", at_size(10'000, 100'000));
  auto began = steady::now();
  auto up = value(box.upload(here / "up", "/room/up"));
  auto between = steady::now();
  auto down = value(box.download("/room/up", here / "down"));
  BOOST_TEST_MESSAGE(up.entries << " entries: up in " << since(began).count() << " ms, both ways, "
                                << since(between).count() << " ms of it down");
  BOOST_TEST(up.refused_total == 0u);
  BOOST_TEST(down.refused_total == 0u);
  BOOST_TEST(up.entries == down.entries);
  auto before = describe_tree(here / "up");
  BOOST_TEST(before.size() + 1 == up.entries);
  BOOST_TEST(differences(before, describe_tree(here / "down")) == "");
  // Holes are holes on the way and at both ends.
  auto allocated = allocated_bytes(here / "up");
  BOOST_TEST(allocated_bytes(here / "down") <= allocated + (1 << 20));
  auto inside = value(box.exec(exec_spec::shell("du -k /room/up/sparse '/room/up/one hole'")));
  BOOST_TEST(std::stoul(inside.out) < 1024u, inside.out);
  // The sandbox sees the same names.
  auto count = value(box.exec(exec_spec::shell("find /room/up -print0 | tr -cd '\\0' | wc -c")));
  BOOST_TEST(std::stoul(count.out) == up.entries);
}

BOOST_FIXTURE_TEST_CASE(an_empty_folder_and_an_empty_file_are_something, tree_rig) {
  fs::create_directories(here / "empty");
  put_file(here / "nothing", "", 0640);
  BOOST_TEST(value(box.upload(here / "empty", "/room/empty")).entries == 1u);
  BOOST_TEST(value(box.upload(here / "nothing", "/room/nothing")).entries == 1u);
  BOOST_TEST((value(box.stat("/room/empty")).type == file_type::directory));
  BOOST_TEST(value(box.stat("/room/nothing")).mode == 0640u);
  BOOST_TEST(value(box.download("/room/empty/.", here / "down")).entries == 1u);
  BOOST_TEST(fs::is_empty(here / "down"));
  BOOST_TEST(value(box.upload(here / "empty/.", "/room/empty")).refused_total == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_command_sees_all_of_the_tree_that_was_uploaded_before_it, tree_rig) {
  for (std::size_t round = 0; round < at_size(30, 300); ++round) {
    fs::remove_all(here / "up");
    for (int i = 0; i < 20; ++i)
      put_file(here / "up" / fmt::format("f{}", i), fmt::format("round {} file {}", round, i));
    value(box.upload(here / "up/.", "/room/same"));
    auto seen = value(box.exec(exec_spec::shell("cat /room/same/f*"))).out;
    std::string all;
    for (const auto& each : {0, 1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 2, 3, 4, 5, 6, 7, 8, 9})
      all += fmt::format("round {} file {}", round, each);
    BOOST_TEST_REQUIRE(seen == all);
  }
}

BOOST_FIXTURE_TEST_CASE(the_copy_belongs_to_root_inside_and_to_the_caller_outside, tree_rig) {
  put_file(here / "up/mine", "x");
  BOOST_TEST_REQUIRE(::chown((here / "up/mine").c_str(), 1234, 5678) == 0);
  value(box.upload(here / "up", "/room/up"));
  auto inside = value(box.stat("/room/up/mine"));
  BOOST_TEST(inside.uid == 0u);
  BOOST_TEST(inside.gid == 0u);
  run("chown agent:agent /room/up/mine");
  value(box.download("/room/up/mine", here / "down"));

  struct stat s {};

  BOOST_TEST_REQUIRE(::lstat((here / "down").c_str(), &s) == 0);
  BOOST_TEST(s.st_uid == ::geteuid());
  // In the archive, owners are as they are inside.
  auto archive = std::make_shared<memory_archive>();
  value(box.pack("/room/up/mine", archive));
  auto listed = run_program({"/bin/tar", "-tvf", "-", "--numeric-owner"}, archive->bytes());
  BOOST_TEST(listed.out.find(" 1000/1000 ") != std::string::npos, listed.out);
}

BOOST_FIXTURE_TEST_CASE(archives_of_any_packer_are_taken_compressed_or_not, tree_rig) {
  put_file(here / "in/caf\u00e9", "of tar");
  put_file(here / "in/not \xff utf-8", "either");
  put_sparse(here / "in/sparse", 8 << 20);
  for (std::string options :
       {"--format=gnu -S", "--format=posix", "--format=ustar", "-z", "-j", "-J", "--zstd"}) {
    BOOST_TEST_CONTEXT(options) {
      auto made = run_program(
        {"/bin/sh", "-c", fmt::format("tar -C {} {} -cf - .", (here / "in").native(), options)});
      BOOST_TEST_REQUIRE(made.code == 0, made.err);
      run("rm -rf /room/t");
      auto report = box.unpack("/room/t", source_of(made.out)).get();
      BOOST_TEST_REQUIRE(bool(report), (report ? "" : report.error().message));
      BOOST_TEST(report->refused_total == 0u);
      fs::remove_all(here / "back");
      value(box.download("/room/t", here / "back"));
      BOOST_TEST(differences(describe_tree(here / "in", false), describe_tree(here / "back", false))
                 == "");
    }
  }
  // And ours is read by tar.
  auto archive = std::make_shared<memory_archive>();
  value(box.pack("/room/t", archive));
  fs::create_directories(here / "by tar");
  auto read = run_program({"/bin/tar", "-C", here / "by tar", "-xf", "-", "--strip-components=1"},
                          archive->bytes());
  BOOST_TEST(read.code == 0, read.err);
  BOOST_TEST(differences(describe_tree(here / "in", false), describe_tree(here / "by tar", false))
             == "");
}

BOOST_FIXTURE_TEST_CASE(a_file_of_a_gibibyte_streams_through, exec_rig) {
  auto roomy = at.environment();
  roomy.limits.disk_bytes = at_size(512, 1536) << 20;
  auto box = create(roomy);
  auto here = at.new_state();
  const auto size = at_size(256, 1024) << 20;
  const auto block = many_bytes(4 << 20);
  fs::create_directories(here);
  {
    std::ofstream out{here / "big", std::ios::binary};
    for (std::size_t n = 0; n < size; n += block.size())
      out << block;
  }
  auto rate = [&](steady::time_point began) {
    return fmt::format("{:.0f} MiB/s", size / 1048.576 / std::max<double>(1, since(began).count()));
  };
  auto began = steady::now();
  auto up = value(box.upload(here / "big", "/room/big"));
  auto upward = rate(began);
  BOOST_TEST(up.bytes == size);
  began = steady::now();
  value(box.download("/room/big", here / "back"));
  auto downward = rate(began);
  began = steady::now();
  fs::create_directories(here / "tar");
  auto piped = run_program(
    {"/bin/sh", "-c", fmt::format("tar -C {0} -cf - big | tar -C {0}/tar -xf -", here.native())});
  BOOST_TEST(piped.code == 0, piped.err);
  BOOST_TEST_MESSAGE("up " << upward << ", down " << downward << ", tar | tar " << rate(began));
  auto same = run_program({"/usr/bin/cmp", here / "big", here / "back"});
  BOOST_TEST(same.code == 0, same.err);
  fs::remove_all(here);
}

BOOST_AUTO_TEST_SUITE_END()
