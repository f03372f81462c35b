#include "backends/spawner/swap.hpp"

#include "backends/kill_point.hpp"
#include "backends/spawner/descriptor.hpp"
#include "backends/spawner/scratch.hpp"

#include <sys/swap.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>

namespace dsec::spawner {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t default_bytes = 8ull << 30;

/// The first page of a swap area, as the kernel reads it.
struct swap_header {
  char boot[1024];
  std::uint32_t version;
  std::uint32_t last_page;
  std::uint32_t bad_pages;
  char padding[page_bytes - 1024 - 12 - 10];
  char magic[10];
};

static_assert(sizeof(swap_header) == page_bytes);

/// Bytes of the file in use as swap; 0 if it is not on.
std::uint64_t bytes_in_use(const std::string& file) {
  std::ifstream table{"/proc/swaps"};
  for (std::string line; std::getline(table, line);) {
    std::string name, type;
    std::uint64_t kib = 0;
    std::stringstream{line} >> name >> type >> kib;
    if (name == file)
      return kib << 10;
  }
  return 0;
}

} // namespace

std::uint64_t
start_swap(const names& where, std::optional<std::uint64_t> wanted_bytes, std::string& why_not) {
  auto file = where.data("swap");
  if (auto bytes = bytes_in_use(file); bytes != 0)
    return bytes;
  auto bytes = wanted_bytes.value_or(std::min(default_bytes, free_bytes(where.data_dir()) / 4));
  bytes -= bytes % page_bytes;
  if (bytes < 16 * page_bytes) {
    why_not = "swap-bytes is " + std::to_string(bytes);
    return 0;
  }
  auto fail = [&](const char* what) {
    why_not = std::string{what} + ' ' + file + ": " + std::strerror(errno);
    ::unlink(file.c_str());
    return std::uint64_t{0};
  };
  kill_point(crash_role::spawner);
  ::unlink(file.c_str());
  descriptor fd{::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!fd)
    return fail("make swap file");
  if (::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) < 0)
    return fail("allocate swap file");
  swap_header header{};
  header.version = 1;
  header.last_page = static_cast<std::uint32_t>(bytes / page_bytes - 1);
  std::memcpy(header.magic, "SWAPSPACE2", sizeof header.magic);
  if (::pwrite(fd.get(), &header, sizeof header, 0) != sizeof header || ::fsync(fd.get()) < 0)
    return fail("write swap file");
  kill_point(crash_role::spawner);
  if (::swapon(file.c_str(), 0) < 0)
    return fail("turn on swap file");
  kill_point(crash_role::spawner);
  return bytes;
}

void stop_swap(const names& where) {
  auto file = where.data("swap");
  kill_point(crash_role::spawner);
  if (bytes_in_use(file) != 0)
    ::swapoff(file.c_str());
  kill_point(crash_role::spawner);
  if (bytes_in_use(file) == 0)
    ::unlink(file.c_str());
}

} // namespace dsec::spawner
