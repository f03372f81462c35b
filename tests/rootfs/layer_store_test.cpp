#include "backends/rootfs/layer_store.hpp"
#include "tests/rootfs/layer_view.hpp"
#include "tests/rootfs/tree_writer.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace dsec;
namespace fs = std::filesystem;

namespace {

struct fixture {
  temporary_folder folder;
  fs::path place = folder.path() / "store";
  fs::path tree = folder.path() / "tree";
  layer_store store{place};

  fixture() {
    fs::create_directory(tree);
  }

  layer_digest import(const fs::path& from) {
    auto digest = store.import_directory(from);
    BOOST_TEST_REQUIRE(bool{digest}, (digest ? "" : digest.error().message));
    return *digest;
  }

  layer_digest import_content(const std::string& content) {
    fs::remove_all(tree);
    write_file(tree / "file", content);
    return import(tree);
  }
};

std::string read_file(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
}

bool says(const error& e, std::initializer_list<std::string_view> parts) {
  for (auto part : parts)
    if (e.message.find(part) == std::string::npos) {
      BOOST_TEST_MESSAGE(e.message);
      return false;
    }
  return true;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(layers, fixture)

BOOST_AUTO_TEST_CASE(the_same_tree_has_the_same_bytes_whatever_the_order_of_its_making) {
  std::string first;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    auto root = folder.path() / ("tree" + std::to_string(seed));
    write_sample_tree(root, seed);
    // Neither the root's own mode and time nor the store's place matter.
    fs::permissions(root, seed % 2 == 0 ? fs::perms::owner_all : fs::perms::all);
    layer_store own{folder.path() / ("store" + std::to_string(seed))};
    auto digest = own.import_directory(root);
    BOOST_TEST_REQUIRE(bool{digest}, (digest ? "" : digest.error().message));
    if (first.empty())
      first = digest->str();
    BOOST_TEST(digest->str() == first);
  }
}

BOOST_AUTO_TEST_CASE(a_tree_on_another_file_system_has_the_same_bytes) {
  if (!fs::is_directory("/dev/shm")) {
    BOOST_TEST_MESSAGE("skipped: /dev/shm is no folder here");
    return;
  }
  auto other = fs::path{"/dev/shm"} / folder.path().filename();
  write_sample_tree(tree, 1);
  write_sample_tree(other, 2);
  auto a = store.import_directory(tree), b = store.import_directory(other);
  fs::remove_all(other);
  BOOST_TEST_REQUIRE((a && b));
  BOOST_TEST(a->str() == b->str());
}

BOOST_AUTO_TEST_CASE(the_image_holds_no_time_of_building) {
  auto digest = import_content("x");
  auto image = read_file(place / digest.str() / "layer.erofs");
  BOOST_TEST(image.substr(1024 + 24, 12) == std::string(12, '\0'));
}

BOOST_AUTO_TEST_CASE(content_owner_mode_time_and_links_come_back) {
  write_sample_tree(tree, 9);
  layer_view layer{place, import(tree)};
  for (const auto& x : fs::recursive_directory_iterator{tree}) {
    auto name = x.path().lexically_relative(tree);

    struct stat a {
    }, b{};

    BOOST_TEST_REQUIRE(::lstat(x.path().c_str(), &a) == 0);
    BOOST_TEST_REQUIRE(::lstat((layer / name).c_str(), &b) == 0);
    BOOST_TEST(a.st_mode == b.st_mode);
    BOOST_TEST(a.st_uid == b.st_uid);
    BOOST_TEST(a.st_gid == b.st_gid);
    BOOST_TEST(a.st_mtim.tv_sec == b.st_mtim.tv_sec);
    BOOST_TEST(a.st_mtim.tv_nsec == b.st_mtim.tv_nsec);
    if (S_ISREG(a.st_mode)) {
      BOOST_TEST(a.st_nlink == b.st_nlink);
      BOOST_TEST((read_file(x.path()) == read_file(layer / name)));
    } else if (S_ISLNK(a.st_mode)) {
      BOOST_TEST(fs::read_symlink(x.path()) == fs::read_symlink(layer / name));
    }
  }

  struct stat root {};

  BOOST_TEST_REQUIRE(::stat((layer / ".").c_str(), &root) == 0);
  BOOST_TEST((root.st_mode & 07777) == 0755u);
  BOOST_TEST(root.st_uid == 0u);
  BOOST_TEST(root.st_mtim.tv_sec == 0);
}

BOOST_AUTO_TEST_CASE(an_empty_tree_is_a_layer) {
  layer_view layer{place, import(tree)};
  BOOST_TEST(entries_of(layer / ".") == 0u);
}

BOOST_AUTO_TEST_CASE(different_trees_have_different_digests) {
  auto a = import_content("a"), b = import_content("b");
  BOOST_TEST(a.str() != b.str());
  BOOST_TEST(store.list()->size() == 2u);
}

BOOST_AUTO_TEST_CASE(devices_fifos_and_sockets_are_refused_by_name_and_nothing_is_left) {
  write_file(tree / "a" / "good", "x");
  BOOST_TEST_REQUIRE(::mknod((tree / "a" / "disk").c_str(), S_IFBLK | 0600, makedev(7, 200)) == 0);
  BOOST_TEST_REQUIRE(::mknod((tree / "a" / "white").c_str(), S_IFCHR | 0600, makedev(0, 0)) == 0);
  BOOST_TEST_REQUIRE(::mkfifo((tree / "pipe").c_str(), 0600) == 0);
  BOOST_TEST_REQUIRE(::mknod((tree / "socket").c_str(), S_IFSOCK | 0600, 0) == 0);
  auto digest = store.import_directory(tree);
  BOOST_TEST_REQUIRE(!digest);
  BOOST_TEST((digest.error().code == errc::invalid_argument));
  BOOST_TEST(says(digest.error(), {"4 entries refused", "\"a/disk\" (block device)", "\"a/white\"",
                                   "\"pipe\" (FIFO)", "\"socket\" (socket)"}));
  BOOST_TEST(entries_of(place) == 0u);
}

BOOST_AUTO_TEST_CASE(devices_in_dev_are_left_out_silently) {
  write_file(tree / "dev" / "readme", "x");
  auto without = import(tree);
  BOOST_TEST_REQUIRE(::mknod((tree / "dev" / "null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0);
  const timespec times[] = {{5, 0}, {5, 0}};
  BOOST_TEST_REQUIRE(::utimensat(AT_FDCWD, (tree / "dev").c_str(), times, 0) == 0);
  layer_view layer{place, import(tree)};
  BOOST_TEST(fs::exists(layer / "dev" / "readme"));
  BOOST_TEST(!fs::exists(layer / "dev" / "null"));
}

BOOST_AUTO_TEST_CASE(attributes_that_steer_overlayfs_are_refused) {
  write_file(tree / "file", "x");
  if (::setxattr((tree / "file").c_str(), "trusted.overlay.redirect", "/etc", 4, 0) != 0) {
    BOOST_TEST_MESSAGE("skipped: this file system has no trusted attributes");
    return;
  }
  auto digest = store.import_directory(tree);
  BOOST_TEST_REQUIRE(!digest);
  BOOST_TEST(says(digest.error(), {"\"file\" (overlayfs attribute)"}));
}

BOOST_AUTO_TEST_CASE(a_long_list_of_refused_entries_is_cut) {
  for (int i = 0; i < 30; ++i)
    BOOST_TEST_REQUIRE(::mkfifo((tree / ("pipe" + std::to_string(i))).c_str(), 0600) == 0);
  auto digest = store.import_directory(tree);
  BOOST_TEST_REQUIRE(!digest);
  BOOST_TEST(says(digest.error(), {"30 entries refused", "and 10 more"}));
}

BOOST_AUTO_TEST_CASE(what_is_no_directory_is_told) {
  write_file(tree / "file", "x");
  auto none = store.import_directory(tree / "absent");
  BOOST_TEST_REQUIRE(!none);
  BOOST_TEST((none.error().code == errc::not_found));
  auto file = store.import_directory(tree / "file");
  BOOST_TEST_REQUIRE(!file);
  BOOST_TEST((file.error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(leftovers_of_a_crash_go_and_imports_under_way_stay) {
  fs::create_directories(place);
  write_file(place / ".building-crashed" / "tree" / "x", "x");
  fs::create_directory(place / ".building-alive");
  int lock = ::open((place / ".building-alive").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  BOOST_TEST_REQUIRE(::flock(lock, LOCK_EX) == 0);
  auto digest = import_content("x");
  BOOST_TEST(!fs::exists(place / ".building-crashed"));
  BOOST_TEST(fs::exists(place / ".building-alive"));
  BOOST_TEST(fs::exists(place / digest.str()));
  ::close(lock);
}

BOOST_AUTO_TEST_CASE(the_list_tells_what_a_layer_is) {
  auto digest = import_content("hello");
  BOOST_TEST_REQUIRE(bool{store.name("base", digest)});
  BOOST_TEST_REQUIRE(bool{store.name("again", digest)});
  auto layers = *store.list();
  BOOST_TEST_REQUIRE(layers.size() == 1u);
  BOOST_TEST(layers[0].digest.str() == digest.str());
  BOOST_TEST(layers[0].files == 1u);
  BOOST_TEST(layers[0].size_bytes >= 8192u);
  BOOST_TEST(layers[0].created_from == fs::canonical(tree).string());
  BOOST_TEST(layers[0].names.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_layer_is_found_by_name_digest_and_beginning) {
  auto digest = import_content("a");
  BOOST_TEST_REQUIRE(bool{store.name("base:1", digest)});
  for (auto text : {std::string{"base:1"}, digest.str(), digest.str().substr(0, 13),
                    digest.str().substr(7, 6)}) {
    auto found = store.resolve(text);
    BOOST_TEST_REQUIRE(bool{found}, text);
    BOOST_TEST(found->str() == digest.str());
  }
  for (auto text : {std::string{}, std::string{"other"}, digest.str().substr(7, 5)}) {
    auto found = store.resolve(text);
    BOOST_TEST_REQUIRE(!found, text);
    BOOST_TEST((found.error().code == errc::not_found));
  }
}

BOOST_AUTO_TEST_CASE(a_beginning_that_fits_several_is_refused) {
  auto twin = "sha256-" + std::string(63, 'a');
  for (auto last : {"0", "1"})
    fs::create_directories(place / (twin + last));
  auto found = store.resolve("aaaaaaaa");
  BOOST_TEST_REQUIRE(!found);
  BOOST_TEST((found.error().code == errc::invalid_argument));
  BOOST_TEST(says(found.error(), {"2 begin like that", twin + "0", twin + "1"}));
}

BOOST_AUTO_TEST_CASE(a_name_moves_to_the_layer_it_was_given_last) {
  auto a = import_content("a"), b = import_content("b");
  BOOST_TEST_REQUIRE(bool{store.name("base", a)});
  BOOST_TEST_REQUIRE(bool{store.name("base", b)});
  BOOST_TEST(store.resolve("base")->str() == b.str());
}

BOOST_AUTO_TEST_CASE(names_are_plain_and_stand_for_layers_that_exist) {
  auto digest = import_content("a");
  for (auto bad : {"", ".hidden", "a/b", "a b", "sha256-abcdef"}) {
    auto named = store.name(bad, digest);
    BOOST_TEST_REQUIRE(!named, bad);
    BOOST_TEST((named.error().code == errc::invalid_argument));
  }
  auto absent = store.name("x", layer_digest{"sha256-" + std::string(64, '0')});
  BOOST_TEST_REQUIRE(!absent);
  BOOST_TEST((absent.error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_removed_layer_is_gone_with_its_names_and_what_is_unknown_is_refused) {
  auto digest = import_content("a");
  BOOST_TEST_REQUIRE(bool{store.name("base", digest)});
  {
    layer_view mounted{place, digest};
    BOOST_TEST_REQUIRE(bool{store.remove(digest)});
    BOOST_TEST(read_file(mounted / "file") == "a");
  }
  BOOST_TEST(store.list()->empty());
  BOOST_TEST(!store.resolve("base"));
  for (const auto& x : {digest, layer_digest{"../tree"}, layer_digest{""}}) {
    auto again = store.remove(x);
    BOOST_TEST_REQUIRE(!again);
    BOOST_TEST((again.error().code == errc::not_found));
  }
  BOOST_TEST(fs::exists(tree / "file"));
}

BOOST_AUTO_TEST_CASE(a_damaged_layer_is_found_out) {
  auto digest = import_content("a");
  BOOST_TEST(bool{store.verify(digest)});
  std::fstream{place / digest.str() / "layer.blob", std::ios::in | std::ios::out} << "b";
  auto damaged = store.verify(digest);
  BOOST_TEST_REQUIRE(!damaged);
  BOOST_TEST((damaged.error().code == errc::corrupt));
}

BOOST_AUTO_TEST_SUITE_END()
