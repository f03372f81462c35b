#define BOOST_TEST_MODULE init_usage

#include "backends/init/usage.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>

using namespace dsec;

namespace {

/// A directory that stands for a group or an account.
struct folder {
  folder() {
    char name[] = "/tmp/dsec-usage-XXXXXX";
    path = ::mkdtemp(name);
    fd = kj::AutoCloseFd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  }

  ~folder() {
    std::error_code failed;
    std::filesystem::remove_all(path, failed);
  }

  void put(const char* name, const std::string& text) const {
    std::ofstream{path / name} << text;
  }

  std::filesystem::path path;
  kj::AutoCloseFd fd;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(block_traffic_is_the_sum_over_all_devices, folder) {
  put("io.stat", "8:0 rbytes=1000 wbytes=2000 rios=3 wios=4 dbytes=77 dios=1\n"
                 "7:11 rbytes=24 wbytes=6 rios=1 wios=1 dbytes=0 dios=0\n");
  auto traffic = init::block_traffic_of(fd);
  BOOST_TEST(traffic.read_bytes == 1024u);
  BOOST_TEST(traffic.written_bytes == 2006u);
}

BOOST_FIXTURE_TEST_CASE(without_an_io_controller_block_traffic_is_zero, folder) {
  BOOST_TEST(init::block_traffic_of(fd).written_bytes == 0u);
  BOOST_TEST(init::block_traffic_of(-1).read_bytes == 0u);
}

BOOST_FIXTURE_TEST_CASE(what_is_about_to_be_written_counts_as_held_on_disk, folder) {
  put("referenced", "16384\n");
  put("rsv_data", "4096\n");
  BOOST_TEST(init::disk_bytes(fd) == 20480u);
  BOOST_TEST(init::disk_bytes(-1) == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_directory_that_is_no_btrfs_has_no_account, folder) {
  kj::AutoCloseFd proc{::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  BOOST_TEST(init::open_disk_account(proc).get() < 0);
  BOOST_TEST(init::open_disk_account(-1).get() < 0);
}
