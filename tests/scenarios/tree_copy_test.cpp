// Where a copy lands: as with cp -a, which the table asks; where it differs, the table says so.
#include "tests/scenarios/tree_rig.hpp"

#include <fstream>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

enum class expected {
  as_cp,   ///< The same tree, or refused where cp fails.
  refused, ///< invalid_argument, and nothing changed.
  inside,  ///< Under the source's name in a new directory of that name.
};

struct row {
  std::string from; ///< Below the source's folder.
  std::string to;   ///< Below the target's.
  expected outcome = expected::as_cp;
};

/// What the target's folder holds before: a directory, a file, links to both, and directories that
/// hold something of the source's name already.
constexpr auto target_script = "mkdir -p dir with_dir/src with_file links_file && echo old > file"
                               " && echo kept > with_dir/src/kept && echo old > with_file/src"
                               " && echo kept > dir/kept && ln -s dir link_dir"
                               " && echo old > with_dir/one && mkdir with_file/one";

constexpr auto source_script =
  "mkdir -p src/sub && echo 1 > src/a && echo 2 > src/sub/b && ln -s a src/l && echo 3 > one"
  " && chmod 640 one && chmod 750 src/sub && mkdir none";

const row rows[] = {
  // A directory.
  {"src", "new"},
  {"src", "dir"},
  {"src", "dir/"},
  {"src", "dir/."},
  {"src", "link_dir"},
  {"src", "with_dir"},
  {"src", "with_file", expected::refused},
  {"src", "file", expected::refused},
  {"src", "file/", expected::refused},
  {"src/", "new"},
  {"src/", "dir"},
  {"src/.", "new"},
  {"src/.", "dir"},
  {"src/.", "dir/"},
  {"src/.", "file", expected::refused},
  {"none", "new"},
  {"none/.", "dir"},
  // cp makes "new" of it.
  {"src", "new/", expected::inside},
  {"src", "deep/er/", expected::inside},
  // A file.
  {"one", "new"},
  {"one", "file"},
  {"one", "dir"},
  {"one", "dir/"},
  {"one", "dir/."},
  {"one", "link_dir"},
  {"one", "with_dir"},
  {"one", "with_file", expected::refused},
  {"one", "file/", expected::refused},
  // cp refuses.
  {"one", "new/", expected::inside},
};

struct copy_rig : tree_rig {
  fs::path source = here / "source";

  copy_rig() {
    make(source, source_script);
    run(std::string{"mkdir -p /room/source && cd /room/source && "} + source_script);
  }

  static void make(const fs::path& folder, const std::string& script) {
    fs::create_directories(folder);
    auto x = run_program({"/bin/sh", "-c", "cd " + folder.native() + " && " + script});
    BOOST_TEST_REQUIRE(x.code == 0, x.err);
  }

  /// What a target holds once cp has been there, or must hold instead.
  std::vector<std::string> wanted(const row& x, const fs::path& folder) const {
    auto to = folder.native() + "/" + x.to;
    if (x.outcome == expected::inside) {
      fs::create_directories(to);
      to += fs::path{x.from}.filename().native();
    }
    if (x.outcome != expected::refused) {
      auto cp = run_program({"/bin/cp", "-a", source.native() + "/" + x.from, to});
      BOOST_TEST_REQUIRE(cp.code == 0, cp.err);
    }
    return describe_tree(folder, false);
  }

  void judge(const row& x, const result<tree_report>& got) const {
    if (x.outcome == expected::refused) {
      BOOST_TEST_REQUIRE(!got);
      BOOST_TEST((got.error().code == errc::invalid_argument), got.error().message);
    } else {
      BOOST_TEST_REQUIRE(bool(got), (got ? "" : got.error().message));
      BOOST_TEST(got->refused_total == 0u);
    }
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(tree_copy, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_download_lands_where_cp_would_put_it, copy_rig) {
  int number = 0;
  for (const auto& x : rows) {
    BOOST_TEST_CONTEXT(x.from << " to " << x.to) {
      auto by_cp = here / fmt::format("cp{}", ++number);
      auto by_us = here / fmt::format("us{}", number);
      make(by_cp, target_script);
      make(by_us, target_script);
      judge(x, box.download("/room/source/" + x.from, by_us.native() + "/" + x.to).get());
      BOOST_TEST(differences(wanted(x, by_cp), describe_tree(by_us, false)) == "");
    }
  }
}

BOOST_FIXTURE_TEST_CASE(an_upload_lands_where_cp_would_put_it, copy_rig) {
  int number = 0;
  for (const auto& x : rows) {
    BOOST_TEST_CONTEXT(x.from << " to " << x.to) {
      auto by_cp = here / fmt::format("cp{}", ++number);
      auto inside = fmt::format("/room/us{}", number);
      make(by_cp, target_script);
      run(fmt::format("mkdir {0} && cd {0} && {1}", inside, target_script));
      judge(x, box.upload(source.native() + "/" + x.from, inside + "/" + x.to).get());
      auto back = here / fmt::format("back{}", number);
      value(box.download(inside + "/.", back));
      BOOST_TEST(differences(wanted(x, by_cp), describe_tree(back, false)) == "");
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_relative_path_of_the_sandbox_is_refused_by_name, copy_rig) {
  for (std::string to : {".", "./", "x/", "x", ""}) {
    auto got = box.upload(source / "src", to).get();
    BOOST_TEST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::invalid_argument), got.error().message);
    BOOST_TEST(got.error().message.find("absolute") != std::string::npos, got.error().message);
  }
  // One of our own is this process's.
  auto was = fs::current_path();
  fs::current_path(here);
  value(box.download("/room/source/src", "."));
  value(box.download("/room/source/src", "./"));
  value(box.download("/room/source/one", "x/"));
  fs::current_path(was);
  BOOST_TEST(fs::exists(here / "src/sub/b"));
  BOOST_TEST(fs::exists(here / "x/one"));
}

BOOST_FIXTURE_TEST_CASE(what_is_not_there_is_not_found_and_leaves_nothing, copy_rig) {
  auto up = box.upload(here / "missing", "/room/made").get();
  BOOST_TEST_REQUIRE(!up);
  BOOST_TEST((up.error().code == errc::not_found), up.error().message);
  BOOST_TEST(!box.stat("/room/made").get());
  auto down = box.download("/room/missing", here / "made").get();
  BOOST_TEST_REQUIRE(!down);
  BOOST_TEST((down.error().code == errc::not_found), down.error().message);
  BOOST_TEST(!fs::exists(here / "made"));
}

BOOST_FIXTURE_TEST_CASE(the_whole_root_comes_down_without_what_is_mounted_in_it, copy_rig) {
  auto got = value(box.download("/", here / "root"));
  auto refused = refusals_of(got);
  BOOST_TEST(refused.contains("proc"));
  BOOST_TEST(fs::exists(here / "root/room/source/src/a"));
  BOOST_TEST(fs::exists(here / "root/bin/busybox"));
  BOOST_TEST(!fs::exists(here / "root/proc/self"));
}

BOOST_AUTO_TEST_SUITE_END()
