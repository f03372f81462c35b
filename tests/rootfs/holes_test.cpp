#include "backends/rootfs/file_descriptor.hpp"
#include "backends/tree/pack.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

using namespace dsec;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// A folder on a file system that lets a file be of any size.
struct memory_folder {
  memory_folder() {
    std::string name = "/dev/shm/dsec-test-XXXXXX";
    BOOST_TEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }

  ~memory_folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }

  void add_hole(const char* name, std::int64_t bytes) const {
    const file_descriptor file{::open((path / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
    BOOST_TEST_REQUIRE(::ftruncate(file.get(), bytes) == 0);
  }

  fs::path path;
};

class counting final : public archive_target {
public:
  result<void> write(std::string_view x) override {
    bytes += x.size();
    return {};
  }

  std::size_t bytes = 0;
};

struct fixture : memory_folder {
  result<void> pack() {
    const file_descriptor folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    return pack_tree(
      folder.get(), ".", {}, archive, "pack",
      [this](std::string_view name, std::string_view why) {
        refused.push_back(std::string{name} + ": " + std::string{why});
      },
      done);
  }

  counting archive;
  tree_report done;
  std::vector<std::string> refused;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(holes, fixture)

BOOST_AUTO_TEST_CASE(a_file_that_is_one_hole_is_packed_in_no_time) {
  add_hole("vast", std::int64_t{1} << 49);
  const auto began = std::chrono::steady_clock::now();
  BOOST_TEST(bool{pack()});
  BOOST_TEST((std::chrono::steady_clock::now() - began < 20s));
  BOOST_TEST(archive.bytes < 100'000u);
  BOOST_TEST(refused.empty());
}

BOOST_AUTO_TEST_CASE(a_file_larger_than_any_disk_is_left_out_and_told) {
  add_hole("endless", std::numeric_limits<std::int64_t>::max());
  add_hole("small", 10);
  BOOST_TEST(bool{pack()});
  BOOST_TEST_REQUIRE(refused.size() == 1u);
  BOOST_TEST(refused[0].ends_with("endless: larger than 1 PiB"), refused[0]);
  BOOST_TEST(archive.bytes < 100'000u);
}

BOOST_AUTO_TEST_SUITE_END()
