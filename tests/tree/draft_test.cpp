// What a file of an archive replaces stays until all of the new one is there.
#include "backends/init/seccomp_filter.hpp"
#include "tests/tree/folder.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <archive.h>
#include <archive_entry.h>
#include <cerrno>
#include <memory>
#include <thread>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;

namespace {

const std::string fresh(300'000, 'n');

/// An archive by libarchive, entry by entry.
class archive_maker {
public:
  archive_maker() {
    archive_write_set_format_pax(writer_.get());
    archive_write_open(writer_.get(), this, nullptr, take, nullptr);
  }

  archive_maker& add(unsigned type, const std::string& name, const std::string& bytes,
                     const std::string& link = {}) {
    auto* x = archive_entry_new();
    archive_entry_set_pathname(x, name.c_str());
    archive_entry_set_filetype(x, type);
    archive_entry_set_perm(x, 0604);
    archive_entry_set_mtime(x, 1'000'000'000, 123'456'789);
    archive_entry_set_size(x, static_cast<la_int64_t>(bytes.size()));
    if (type != AE_IFLNK && link.empty())
      archive_entry_xattr_add_entry(x, "user.of", name.data(), name.size());
    if (type == AE_IFLNK)
      archive_entry_set_symlink(x, link.c_str());
    else if (!link.empty())
      archive_entry_set_hardlink(x, link.c_str());
    archive_write_header(writer_.get(), x);
    archive_write_data(writer_.get(), bytes.data(), bytes.size());
    archive_entry_free(x);
    return *this;
  }

  std::string bytes() {
    archive_write_close(writer_.get());
    return bytes_;
  }

private:
  static la_ssize_t take(archive*, void* self, const void* from, std::size_t count) {
    static_cast<archive_maker*>(self)->bytes_.append(static_cast<const char*>(from), count);
    return static_cast<la_ssize_t>(count);
  }

  std::unique_ptr<archive, int (*)(archive*)> writer_{archive_write_new(), archive_write_free};
  std::string bytes_;
};

std::string one_file() {
  return archive_maker{}.add(AE_IFREG, "file", fresh).bytes();
}

/// In a thread for which no file system makes files without a name.
template <class Do>
void where_files_have_names(Do work) {
  std::thread{[&] {
    constexpr std::uint32_t tmpfile_bit = O_TMPFILE & ~O_DIRECTORY;
    BOOST_TEST_REQUIRE(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    init::seccomp_filter filter;
    filter.refuse_bits(SYS_openat, 2, tmpfile_bit, EOPNOTSUPP);
    BOOST_TEST_REQUIRE(filter.install() == 0);
    work();
  }}.join();
}

struct stat status_of(const fs::path& path) {
  struct stat s {};

  BOOST_TEST(::lstat(path.c_str(), &s) == 0, path.native());
  return s;
}

struct replaced : folder {
  told refused;

  replaced() {
    put("file", "old");
  }

  void breaks_off() {
    const auto before = status_of(path / "file");
    auto all = one_file();
    memory_source half{all.substr(0, all.size() / 2), [&] {
                         BOOST_TEST(content("file") == "old");
                       }};
    auto ended = unpack(half, *this, refused);
    BOOST_TEST_REQUIRE(!ended);
    BOOST_TEST((ended.error().code == errc::corrupt), ended.error().message);
    BOOST_TEST(content("file") == "old");
    const auto after = status_of(path / "file");
    BOOST_TEST(after.st_ino == before.st_ino);
    BOOST_TEST(after.st_mode == before.st_mode);
    BOOST_TEST((names() == std::set<std::string>{"file"}));
  }

  void is_complete() {
    std::size_t pieces = 0;
    memory_source whole{one_file(), [&] {
                          pieces += content("file") == "old";
                        }};
    auto ended = unpack(whole, *this, refused);
    BOOST_TEST(bool{ended});
    BOOST_TEST(pieces > 2u);
    BOOST_TEST(content("file") == fresh);
    const auto s = status_of(path / "file");
    BOOST_TEST((s.st_mode & 07777) == 0604u);
    BOOST_TEST(s.st_mtim.tv_nsec == 123'456'789);
    BOOST_TEST(s.st_nlink == 1u);
    char value[10];
    BOOST_TEST(::getxattr((path / "file").c_str(), "user.of", value, sizeof value) == 4);
    BOOST_TEST((names() == std::set<std::string>{"file"}));
    BOOST_TEST(refused.lines.empty());
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(drafts)

BOOST_FIXTURE_TEST_CASE(an_archive_that_breaks_off_leaves_the_old_file, replaced) {
  breaks_off();
}

BOOST_FIXTURE_TEST_CASE(a_file_takes_the_place_of_the_old_one_when_it_is_complete, replaced) {
  is_complete();
}

BOOST_FIXTURE_TEST_CASE(until_then_it_has_no_name, replaced) {
  memory_source whole{one_file(), [&] {
                        BOOST_TEST((names() == std::set<std::string>{"file"}));
                      }};
  BOOST_TEST(bool{unpack(whole, *this, refused)});
}

BOOST_FIXTURE_TEST_CASE(the_same_holds_where_every_file_has_a_name, replaced) {
  where_files_have_names([&] {
    breaks_off();
    std::string beside;
    memory_source whole{one_file(), [&] {
                          for (const auto& name : names())
                            if (name != "file")
                              beside = name;
                        }};
    BOOST_TEST(bool{unpack(whole, *this, refused)});
    BOOST_TEST(beside.starts_with(".dsec-new-"), beside);
    put("file", "old");
    is_complete();
  });
}

BOOST_FIXTURE_TEST_CASE(links_take_a_place_in_one_step_as_well, replaced) {
  put("third", "old");
  auto all = archive_maker{}
               .add(AE_IFREG, "first", "content")
               .add(AE_IFREG, "file", "", "first")
               .add(AE_IFREG, "file", "", "first")
               .add(AE_IFLNK, "third", "", "nowhere")
               .bytes();
  // Once more: all of it is there by then.
  for (int round = 0; round < 2; ++round) {
    memory_source from{all};
    BOOST_TEST(bool{unpack(from, *this, refused)});
    BOOST_TEST(content("file") == "content");
    BOOST_TEST(status_of(path / "first").st_nlink == 2u);
    BOOST_TEST(fs::read_symlink(path / "third") == "nowhere");
    BOOST_TEST((names() == std::set<std::string>{"file", "first", "third"}));
  }
  BOOST_TEST(refused.lines.empty());
}

BOOST_FIXTURE_TEST_CASE(a_link_that_cannot_be_made_leaves_the_old_file, replaced) {
  auto all = archive_maker{}.add(AE_IFREG, "file", "", "missing").bytes();
  memory_source from{all};
  BOOST_TEST(bool{unpack(from, *this, refused)});
  BOOST_TEST(refused.lines.size() == 1u);
  BOOST_TEST(content("file") == "old");
}

BOOST_FIXTURE_TEST_CASE(a_folder_is_not_replaced_and_nothing_is_left_beside_it, folder) {
  told refused;
  fs::create_directory(path / "file");
  auto all = archive_maker{}
               .add(AE_IFREG, "file", fresh)
               .add(AE_IFLNK, "file", "", "x")
               .add(AE_IFREG, "last", "kept")
               .add(AE_IFREG, "file", "", "last")
               .bytes();
  memory_source from{all};
  BOOST_TEST(bool{unpack(from, *this, refused)});
  BOOST_TEST(refused.lines == (std::vector<std::string>(3, "file: a directory is there")),
             boost::test_tools::per_element());
  BOOST_TEST((names() == std::set<std::string>{"file", "last"}));
  BOOST_TEST(fs::is_empty(path / "file"));
}

BOOST_FIXTURE_TEST_CASE(a_folder_keeps_no_attributes_and_that_is_told, folder) {
  told refused;
  memory_source from{archive_maker{}.add(AE_IFDIR, "folder", "").bytes()};
  BOOST_TEST(bool{unpack(from, *this, refused)});
  BOOST_TEST(refused.lines
               == (std::vector<std::string>{"folder: moved without its attribute \"user.of\""}),
             boost::test_tools::per_element());
  BOOST_TEST(fs::is_directory(path / "folder"));
}

BOOST_AUTO_TEST_SUITE_END()
