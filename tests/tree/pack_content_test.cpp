// Files that are not as large as they say, or not for long.
#include "tests/tree/folder.hpp"

#include <sys/xattr.h>

#include <unistd.h>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;

namespace {

struct packed {
  folder to;
  told refused;
  tree_report done;

  /// Packs one path and unpacks it again as "copy"; nothing if it was left out.
  void move(const fs::path& from, std::function<void()> on_write = nullptr) {
    file_descriptor in{::open(from.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    memory_target archive{std::move(on_write)};
    auto ok =
      pack_tree(in.get(), from.filename(), {"copy", false}, archive, "pack", refused.hear(), done);
    BOOST_TEST_REQUIRE(bool{ok}, (ok ? "" : ok.error().message));
    memory_source back{archive.bytes};
    told none;
    BOOST_TEST_REQUIRE(bool{unpack(back, to, none)});
    BOOST_TEST(none.lines.empty());
  }

  std::string copy() const {
    return to.content("copy");
  }

  bool is_left_out() const {
    return !fs::exists(to.path / "copy");
  }

  /// The one line of it.
  std::string why() const {
    BOOST_TEST_REQUIRE(refused.lines.size() == 1u);
    return refused.lines[0];
  }
};

std::string read_whole(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

constexpr std::size_t large = 2 << 20;

} // namespace

BOOST_FIXTURE_TEST_SUITE(pack_content, packed)

BOOST_AUTO_TEST_CASE(a_file_that_says_it_has_no_bytes_is_packed_with_those_it_has) {
  move("/proc/sys/kernel/ostype");
  BOOST_TEST(copy() == "Linux\n");
  BOOST_TEST(done.bytes == 6u);
  BOOST_TEST(refused.lines.empty());
}

BOOST_AUTO_TEST_CASE(one_of_more_than_a_piece_too) {
  // Every function of the kernel; megabytes, which the same process reads the same twice.
  const auto is = read_whole("/proc/kallsyms");
  BOOST_TEST(is.size() > 300'000u);
  move("/proc/kallsyms");
  BOOST_TEST((copy() == is));
  BOOST_TEST(refused.lines.empty());
}

BOOST_AUTO_TEST_CASE(a_file_that_says_it_has_a_page_is_packed_with_what_it_contains) {
  const fs::path online = "/sys/devices/system/cpu/online";
  BOOST_TEST_REQUIRE(fs::file_size(online) > 100u);
  move(online);
  BOOST_TEST(copy() == read_whole(online));
  BOOST_TEST(refused.lines.empty());
}

BOOST_AUTO_TEST_CASE(one_without_an_end_is_left_out_with_the_limit) {
  move("/proc/self/pagemap");
  BOOST_TEST(is_left_out());
  BOOST_TEST(why().starts_with("copy: "), why());
  BOOST_TEST(why().find("33554432") != std::string::npos, why());
}

BOOST_AUTO_TEST_CASE(one_that_cannot_be_read_is_left_out_and_not_empty) {
  move("/proc/self/mem");
  BOOST_TEST(is_left_out());
  BOOST_TEST(why() == "copy: Input/output error");
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_one) {
  folder from;
  from.put("empty", "");
  move(from.path / "empty");
  BOOST_TEST(!is_left_out());
  BOOST_TEST(copy() == "");
  BOOST_TEST(refused.lines.empty());
}

BOOST_AUTO_TEST_CASE(a_file_that_shrinks_while_it_is_packed_has_zeros_there_and_that_is_told) {
  folder from;
  from.put("file", std::string(large, 'x'));
  move(from.path / "file", [&] { BOOST_TEST(::truncate((from.path / "file").c_str(), 0) == 0); });
  BOOST_TEST(copy().size() == large);
  const auto is = copy().find('\0');
  BOOST_TEST(is < large);
  BOOST_TEST(copy().find_first_not_of('\0', is) == std::string::npos);
  BOOST_TEST(why().starts_with("copy: its size changed while it was read"), why());
  BOOST_TEST(why().find("zeros where they were gone") != std::string::npos, why());
}

BOOST_AUTO_TEST_CASE(a_file_that_grows_while_it_is_packed_is_cut_and_that_is_told) {
  folder from;
  from.put("file", std::string(large, 'x'));
  move(from.path / "file", [&] { std::ofstream{from.path / "file", std::ios::app} << "more"; });
  BOOST_TEST((copy() == std::string(large, 'x')));
  BOOST_TEST(why().starts_with("copy: its size changed while it was read"), why());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_written_while_it_is_packed_is_told) {
  folder from;
  from.put("file", std::string(large, 'x'));
  move(from.path / "file", [&] {
    std::fstream{from.path / "file", std::ios::in | std::ios::out} << "other";
  });
  BOOST_TEST(copy().size() == large);
  BOOST_TEST(why() == "copy: moved, but it was written while it was read");
}

BOOST_AUTO_TEST_CASE(a_folder_is_packed_without_its_attributes_and_that_is_told) {
  folder from;
  BOOST_TEST_REQUIRE(::setxattr(from.path.c_str(), "user.of", "x", 1, 0) == 0);
  move(from.path);
  BOOST_TEST(fs::is_directory(to.path / "copy"));
  BOOST_TEST(why() == "copy: moved without its attribute \"user.of\"");
}

BOOST_AUTO_TEST_SUITE_END()
