#include "backends/tree/pack_file.hpp"

#include <sys/mman.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace dsec {

namespace {

constexpr std::size_t ranges_max = 4096;
constexpr std::size_t piece_bytes = bytes_read_first;

std::vector<char>& piece() {
  static std::vector<char> thread_local buffer(piece_bytes);
  return buffer;
}

/// As `::read`, again if a signal came.
ssize_t read_some(int file, char* to, std::size_t bytes) {
  ssize_t n;
  do
    n = ::read(file, to, bytes);
  while (n < 0 && errno == EINTR);
  return n;
}

/// What follows `begun`, to the end that only reading tells.
file_content read_on(int file, std::string_view begun, std::string& all) {
  all = begun;
  for (;;) {
    const auto at = all.size();
    all.resize(at + piece_bytes);
    const auto n = read_some(file, all.data() + at, piece_bytes);
    all.resize(at + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0)
      return {{}, errno};
    if (n == 0)
      return {all};
    if (all.size() > unsized_bytes_max)
      return {{}, EFBIG};
  }
}

/// As many as libarchive takes at once: it passes over those that are holes without reading them,
/// and an agent may make holes of any size.
std::string_view many_zeros() {
  constexpr std::size_t bytes = 1 << 30;
  const void* all =
    ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all != MAP_FAILED)
    return {static_cast<const char*>(all), bytes};
  static const std::string few(piece_bytes, '\0');
  return few;
}

} // namespace

file_data data_ranges(int file, std::uint64_t size, std::uint64_t allocated) {
  const auto end = static_cast<std::int64_t>(size);
  file_data whole{{{0, end}}, false};
  if (allocated >= size)
    return whole;
  file_data found;
  std::int64_t at = 0;
  while (at < end) {
    auto data = ::lseek(file, at, SEEK_DATA);
    // ENXIO: a hole to the end.
    if (data < 0 && errno == ENXIO)
      break;
    auto hole = data < 0 ? -1 : ::lseek(file, data, SEEK_HOLE);
    if (hole < 0)
      return whole;
    if (data >= end)
      break;
    hole = std::min<std::int64_t>(hole, end);
    if (found.ranges.size() == ranges_max)
      hole = end;
    found.ranges.push_back({data, hole - data});
    at = hole;
  }
  std::int64_t in_data = 0;
  for (const auto& range : found.ranges)
    in_data += range.bytes;
  if (in_data == end)
    return whole;
  if (found.ranges.empty())
    found.ranges.push_back({0, 0});
  found.has_holes = true;
  return found;
}

file_content content_of(int file, std::uint64_t size, std::string& held) {
  auto& buffer = piece();
  if (size == 0) {
    const auto n = read_some(file, buffer.data(), buffer.size());
    if (n <= 0)
      return {{}, n < 0 ? errno : 0};
    return read_on(file, {buffer.data(), static_cast<std::size_t>(n)}, held);
  }
  const auto most = std::min<std::size_t>(size, buffer.size());
  std::size_t count = 0;
  while (count < most) {
    // Whoever looked for holes has moved in it.
    const auto n = ::pread(file, buffer.data() + count, most - count, static_cast<off_t>(count));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return {{}, errno};
    if (n == 0)
      break;
    count += static_cast<std::size_t>(n);
  }
  return {{buffer.data(), count}};
}

std::vector<file_attribute> attributes_of(int file) {
  auto bytes = ::flistxattr(file, nullptr, 0);
  if (bytes <= 0)
    return {};
  std::string names(static_cast<std::size_t>(bytes), '\0');
  bytes = ::flistxattr(file, names.data(), names.size());
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(0, bytes)));
  std::vector<file_attribute> all;
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    file_attribute x{names.c_str() + at, {}};
    bytes = ::fgetxattr(file, x.name.c_str(), nullptr, 0);
    if (bytes > 0) {
      x.value.resize(static_cast<std::size_t>(bytes));
      bytes = ::fgetxattr(file, x.name.c_str(), x.value.data(), x.value.size());
    }
    if (bytes < 0)
      continue;
    x.value.resize(static_cast<std::size_t>(bytes));
    all.push_back(std::move(x));
  }
  return all;
}

bool copy_ranges(archive* to, int file, const file_data& data, std::uint64_t size, reading& done) {
  static const std::string_view zeros = many_zeros();
  auto& buffer = piece();
  std::int64_t at = 0;
  auto put = [&](const char* from, std::size_t count) {
    at += static_cast<std::int64_t>(count);
    return count == 0 || archive_write_data(to, from, count) == static_cast<la_ssize_t>(count);
  };
  // libarchive is given the holes, too, and leaves them out.
  auto fill_until = [&](std::int64_t end, std::size_t most) {
    while (at < end)
      if (!put(zeros.data(), std::min(static_cast<std::size_t>(end - at), most)))
        return false;
    return true;
  };
  for (const auto& range : data.ranges) {
    const auto end = range.offset + range.bytes;
    if (!fill_until(range.offset, zeros.size()))
      return false;
    while (done.complete && at < end) {
      auto want = std::min<std::int64_t>(end - at, buffer.size());
      auto n = ::pread(file, buffer.data(), static_cast<std::size_t>(want), at);
      if (n < 0 && errno == EINTR)
        continue;
      done.complete = n > 0;
      done.number = n < 0 ? errno : 0;
      if (!done.complete)
        break;
      done.bytes += static_cast<std::uint64_t>(n);
      if (!put(buffer.data(), static_cast<std::size_t>(n)))
        return false;
    }
    // What is missing of the data is written.
    if (!fill_until(end, std::min(piece_bytes, zeros.size())))
      return false;
  }
  return fill_until(static_cast<std::int64_t>(size), zeros.size());
}

} // namespace dsec
