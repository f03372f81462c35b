#include "backends/rootfs/base_cleanup.hpp"
#include "tests/rootfs/tree_writer.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <fcntl.h>

using namespace dsec;

BOOST_AUTO_TEST_SUITE(base_cleanup)

BOOST_AUTO_TEST_CASE(what_differs_between_two_installations_is_gone) {
  temporary_folder folder;
  const auto& tree = folder.path();
  for (auto name : {"var/log/apt/term.log", "var/cache/ldconfig/aux-cache", "etc/hostname",
                    "etc/apt/sources.list.d/mirror.sources", "var/lib/apt/lists/x", "dev/null",
                    "usr/share/man/man1/a", "etc/machine-id", "usr/bin/tool"})
    write_file(tree / name, "content");
  BOOST_TEST_REQUIRE(bool{clean_base(tree, 1'700'000'000)});
  for (auto name :
       {"var/log/apt/term.log", "var/cache/ldconfig/aux-cache", "etc/hostname",
        "etc/apt/sources.list.d", "var/lib/apt/lists/x", "dev/null", "usr/share/man/man1"})
    BOOST_TEST(!std::filesystem::exists(tree / name), name);
  for (auto name : {"var/log/apt", "usr/bin/tool", "dev"})
    BOOST_TEST(std::filesystem::exists(tree / name), name);
  BOOST_TEST(std::filesystem::file_size(tree / "etc/machine-id") == 0u);
}

BOOST_AUTO_TEST_CASE(times_of_the_installation_are_set_back_and_older_ones_stay) {
  temporary_folder folder;
  const auto& tree = folder.path();
  write_file(tree / "new", "x");
  write_file(tree / "old", "x");
  const timespec times[] = {{1000, 5}, {1000, 5}};
  BOOST_TEST_REQUIRE(::utimensat(AT_FDCWD, (tree / "old").c_str(), times, 0) == 0);
  BOOST_TEST_REQUIRE(bool{clean_base(tree, 1'700'000'000)});

  struct stat status {};

  BOOST_TEST_REQUIRE(::stat((tree / "new").c_str(), &status) == 0);
  BOOST_TEST(status.st_mtim.tv_sec == 1'700'000'000);
  BOOST_TEST(status.st_mtim.tv_nsec == 0);
  BOOST_TEST_REQUIRE(::stat((tree / "old").c_str(), &status) == 0);
  BOOST_TEST(status.st_mtim.tv_sec == 1000);
}

BOOST_AUTO_TEST_SUITE_END()
