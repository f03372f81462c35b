#include "backends/rootfs/layer_store.hpp"
#include "tests/rootfs/layer_view.hpp"
#include "tests/rootfs/tree_writer.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

#include <archive.h>
#include <archive_entry.h>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace dsec;
namespace fs = std::filesystem;

namespace {

/// Writes a tar archive entry by entry, whatever nonsense it holds.
class tar_writer {
public:
  explicit tar_writer(const fs::path& path, int filter = ARCHIVE_FILTER_NONE) {
    archive_write_set_format_pax_restricted(to_);
    archive_write_add_filter(to_, filter);
    if (archive_write_open_filename(to_, path.c_str()) != ARCHIVE_OK)
      throw std::runtime_error{"open archive"};
  }

  ~tar_writer() {
    archive_write_close(to_);
    archive_write_free(to_);
  }

  tar_writer& file(const char* name, std::string_view content, mode_t mode = 0644) {
    auto* x = entry(name, AE_IFREG, mode);
    archive_entry_set_size(x, static_cast<la_int64_t>(content.size()));
    return put(x, content);
  }

  tar_writer& special(const char* name, unsigned type) {
    return put(entry(name, type, 0755), {});
  }

  tar_writer& symlink(const char* name, const char* target) {
    auto* x = entry(name, AE_IFLNK, 0777);
    archive_entry_set_symlink(x, target);
    return put(x, {});
  }

  tar_writer& hard_link(const char* name, const char* target) {
    auto* x = entry(name, AE_IFREG, 0644);
    archive_entry_set_hardlink(x, target);
    return put(x, {});
  }

private:
  archive_entry* entry(const char* name, unsigned type, mode_t mode) {
    auto* x = archive_entry_new();
    archive_entry_set_pathname(x, name);
    archive_entry_set_filetype(x, type);
    archive_entry_set_perm(x, mode);
    archive_entry_set_uid(x, 1000);
    archive_entry_set_gid(x, 100);
    archive_entry_set_mtime(x, 1'600'000'000, 0);
    return x;
  }

  tar_writer& put(archive_entry* x, std::string_view content) {
    if (archive_write_header(to_, x) != ARCHIVE_OK)
      throw std::runtime_error{archive_error_string(to_)};
    archive_write_data(to_, content.data(), content.size());
    archive_entry_free(x);
    return *this;
  }

  archive* to_ = archive_write_new();
};

struct fixture {
  temporary_folder folder;
  fs::path place = folder.path() / "store";
  fs::path tar = folder.path() / "layer.tar";
  layer_store store{place};

  layer_digest import() {
    auto digest = store.import_tar(tar);
    BOOST_TEST_REQUIRE(bool{digest}, (digest ? "" : digest.error().message));
    return *digest;
  }

  /// True if the import is refused, names all of `parts`, and leaves nothing behind.
  bool refused(std::initializer_list<std::string_view> parts) {
    auto digest = store.import_tar(tar);
    if (digest || digest.error().code != errc::invalid_argument || !store.list()->empty())
      return false;
    for (auto part : parts)
      if (digest.error().message.find(part) == std::string::npos) {
        BOOST_TEST_MESSAGE(digest.error().message);
        return false;
      }
    return fs::is_empty(place);
  }
};

std::string read_file(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(tar_archives, fixture)

BOOST_AUTO_TEST_CASE(an_archive_becomes_a_layer_with_owners_modes_times_and_links) {
  tar_writer{tar}
    .special("./", AE_IFDIR)
    .special("./bin/", AE_IFDIR)
    .file("./bin/tool", "run", 04755)
    .symlink("./bin/sh", "/bin/dash")
    .hard_link("./bin/again", "./bin/tool")
    .file("no/folder/entry", "deep");
  layer_view layer{place, import()};

  struct stat status {};

  BOOST_TEST_REQUIRE(::stat((layer / "bin/tool").c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 07777) == 04755u);
  BOOST_TEST(status.st_uid == 1000u);
  BOOST_TEST(status.st_gid == 100u);
  BOOST_TEST(status.st_nlink == 2u);
  BOOST_TEST(status.st_mtim.tv_sec == 1'600'000'000);
  BOOST_TEST_REQUIRE(::stat((layer / "bin").c_str(), &status) == 0);
  BOOST_TEST(status.st_mtim.tv_sec == 1'600'000'000);
  BOOST_TEST(read_file(layer / "bin/again") == "run");
  BOOST_TEST(read_file(layer / "no/folder/entry") == "deep");
  BOOST_TEST(fs::read_symlink(layer / "bin/sh").string() == "/bin/dash");
}

BOOST_AUTO_TEST_CASE(compression_does_not_change_the_layer) {
  std::string first;
  for (int filter : {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_XZ,
                     ARCHIVE_FILTER_ZSTD, ARCHIVE_FILTER_BZIP2}) {
    tar_writer{tar, filter}.file("a", std::string(100'000, 'x'));
    auto digest = import().str();
    if (first.empty())
      first = digest;
    BOOST_TEST(digest == first);
  }
}

BOOST_AUTO_TEST_CASE(a_tree_packed_by_tar_is_the_layer_of_the_tree) {
  auto tree = folder.path() / "tree";
  write_sample_tree(tree, 3);
  auto command = "tar --format=posix -C " + tree.string() + " -cf " + tar.string() + " .";
  BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
  BOOST_TEST(import().str() == store.import_directory(tree)->str());
}

BOOST_AUTO_TEST_CASE(names_are_the_bytes_that_tar_packed) {
  auto tree = folder.path() / "tree";
  for (const char* name : {"e\xcc\x81 decomposed", "\xc3\xa9 composed", "not \xff utf-8"})
    write_file(tree / name, "x");
  // The older format has no parts of a second.
  auto dated = "find " + tree.string() + " -exec touch -d @1600000000 {} +";
  BOOST_TEST_REQUIRE(std::system(dated.c_str()) == 0);
  for (std::string format : {"gnu", "posix"}) {
    auto command =
      "tar --format=" + format + " -C " + tree.string() + " -cf " + tar.string() + " .";
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
    BOOST_TEST(import().str() == store.import_directory(tree)->str());
  }
}

BOOST_AUTO_TEST_CASE(names_that_leave_the_tree_are_refused) {
  tar_writer{tar}.file("good", "x").file("/etc/passwd", "x").file("a/../../b", "x").file("..", "x");
  BOOST_TEST(refused({"3 entries refused", "\"/etc/passwd\" (absolute name)", "\"a/../../b\""}));
}

BOOST_AUTO_TEST_CASE(links_that_leave_the_tree_are_refused) {
  tar_writer{tar}
    .file("file", "x")
    .symlink("a/up", "../../etc")
    .symlink("a/fine", "../file")
    .hard_link("b", "/etc/passwd")
    .hard_link("c", "../x")
    .hard_link("d", "absent");
  BOOST_TEST(refused({"4 entries refused", "\"a/up\"", "\"b\" (hard link out", "\"c\"",
                      "\"d\" (hard link to \"absent\""}));
}

BOOST_AUTO_TEST_CASE(nothing_is_written_through_a_link_that_leads_outside) {
  auto outside = folder.path() / "outside";
  fs::create_directory(outside);
  write_file(outside / "secret", "s");
  tar_writer{tar}
    .symlink("way", outside.c_str())
    .special((outside.string().substr(1) + "/").c_str(), AE_IFDIR)
    .file("way/planted", "x");
  layer_view layer{place, import()};
  // The sandbox would read the link from its own root, and so does the import.
  BOOST_TEST(read_file(layer / (outside.string().substr(1) + "/planted")) == "x");
  BOOST_TEST(!fs::exists(outside / "planted"));
}

BOOST_AUTO_TEST_CASE(no_hard_link_reaches_outside_through_a_link) {
  auto outside = folder.path() / "outside";
  write_file(outside / "secret", "s");
  tar_writer{tar}.symlink("way", outside.c_str()).hard_link("mine", "way/secret");
  BOOST_TEST(refused({"\"mine\" (hard link to \"way/secret\""}));
}

BOOST_AUTO_TEST_CASE(devices_and_fifos_are_refused_but_those_of_dev_left_out) {
  tar_writer{tar}.special("dev/null", AE_IFCHR).file("a", "x");
  BOOST_TEST(!fs::exists(layer_view{place, import()} / "dev/null"));
  fs::remove_all(place);
  tar_writer{tar}.special("disk", AE_IFBLK).special("pipe", AE_IFIFO);
  BOOST_TEST(refused({"2 entries refused", "\"disk\" (device)", "\"pipe\" (FIFO)"}));
}

BOOST_AUTO_TEST_CASE(a_later_entry_replaces_an_earlier_one) {
  tar_writer{tar}.file("a", "old and long").symlink("b", "a").file("a", "new").file("b", "own");
  layer_view layer{place, import()};
  BOOST_TEST(read_file(layer / "a") == "new");
  BOOST_TEST(read_file(layer / "b") == "own");
}

BOOST_AUTO_TEST_CASE(an_archive_that_no_tree_can_hold_is_wrong_and_not_the_machine) {
  const auto long_name = std::string(300, 'x');
  const auto deep_name = [] {
    std::string name = "x";
    for (int i = 0; i < 3000; ++i)
      name += "/x";
    return name;
  }();
  for (const auto* below : {"a/b", long_name.c_str(), deep_name.c_str(), "loop/b", "gone/b"}) {
    tar_writer{tar}
      .file("a", "x")
      .symlink("loop", "loop")
      .symlink("gone", "absent")
      .file(below, "y");
    const auto digest = store.import_tar(tar);
    BOOST_TEST_REQUIRE(!digest, below);
    BOOST_TEST((digest.error().code == errc::invalid_argument), digest.error().message);
    BOOST_TEST(fs::is_empty(place));
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_archive_is_corrupt_and_leaves_nothing) {
  tar_writer{tar, ARCHIVE_FILTER_GZIP}.file("a", std::string(1'000'000, 'x'));
  fs::resize_file(tar, fs::file_size(tar) / 2);
  auto cut = store.import_tar(tar);
  BOOST_TEST_REQUIRE(!cut);
  BOOST_TEST((cut.error().code == errc::corrupt));
  BOOST_TEST(fs::is_empty(place));
  std::ofstream{tar} << "this is no archive at all";
  auto text = store.import_tar(tar);
  BOOST_TEST_REQUIRE(!text);
  BOOST_TEST((text.error().code == errc::corrupt));
  // Beginnings of compressed files and nothing good behind them: libarchive has no words for some.
  const std::string_view beginnings[] = {{"\x1f\x8b\x08\0\0\0\0\0", 8},
                                         {"BZh9\x31\x41\x59\x26\x53\x59", 10},
                                         {"\xfd\x37zXZ\0", 6},
                                         {"\x28\xb5\x2f\xfd", 4},
                                         {"\x04\x22\x4d\x18", 4}};
  for (auto beginning : beginnings)
    for (std::size_t size : {0, 1, 25, 600}) {
      std::ofstream{tar, std::ios::binary} << beginning << std::string(size, '\xdb');
      const auto nonsense = store.import_tar(tar);
      BOOST_TEST_REQUIRE(!nonsense);
      BOOST_TEST((nonsense.error().code == errc::corrupt), nonsense.error().message);
    }
  auto absent = store.import_tar(folder.path() / "absent.tar");
  BOOST_TEST_REQUIRE(!absent);
  BOOST_TEST((absent.error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_killed_import_leaves_no_layer_and_the_next_one_cleans_up) {
  tar_writer{tar}.file("a", std::string(1'000'000, 'x'));
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  auto child = ::fork();
  BOOST_TEST_REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[1]);
    auto digest = store.import_tar(ends[0], "pipe");
    ::_exit(digest ? 0 : 1);
  }
  ::close(ends[0]);
  // More than the pipe holds: once it is written, the child is in the middle of the archive.
  auto bytes = read_file(tar).substr(0, 700'000);
  BOOST_TEST_REQUIRE(::write(ends[1], bytes.data(), bytes.size())
                     == static_cast<ssize_t>(bytes.size()));
  BOOST_TEST(!fs::is_empty(place));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[1]);
  BOOST_TEST(store.list()->empty());
  auto digest = import();
  BOOST_TEST(std::distance(fs::directory_iterator{place}, fs::directory_iterator{}) == 1);
  BOOST_TEST(bool{store.verify(digest)});
}

BOOST_AUTO_TEST_SUITE_END()
