#pragma once

#include <archive.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

/// Where a file has data; between the ranges are holes.
struct file_data {
  struct range {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };

  std::vector<range> ranges; ///< One of no bytes, if there is no data at all.
  bool has_holes = false;
};

/// At most 4096 ranges, the last of which then has the rest, holes and all.
file_data data_ranges(int file, std::uint64_t size, std::uint64_t allocated);

struct file_attribute {
  std::string name;
  std::string value;
};

/// Files of /proc and /sys say that they have no bytes, or a page of them, whatever they contain:
/// what can be read says it. Those of at most `bytes_read_first` are read before their size is
/// told.
inline constexpr std::uint64_t bytes_read_first = 256 << 10;

/// More than that is not read of a file that says it has none: it may have no end.
inline constexpr std::uint64_t unsized_bytes_max = 32 << 20;

struct file_content {
  std::string_view bytes; ///< Good until the next one of this thread, and as long as `held`.
  int number = 0;         ///< An errno value: it cannot be read. EFBIG: more than the limit.
};

/// All of a file just opened that says it has `size` bytes, at most `bytes_read_first`: never more
/// than that but of one that says 0, fewer if it ends before. `held` is for what is larger.
file_content content_of(int file, std::uint64_t size, std::string& held);

/// Extended attributes; none where they cannot be read.
std::vector<file_attribute> attributes_of(int file);

/// What became of the reading of a file.
struct reading {
  std::uint64_t bytes = 0; ///< Read.
  bool complete = true;    ///< False: the file had fewer, or could not be read.
  int number = 0;          ///< An errno value: why not.
};

/// Writes the content of the entry under way: exactly `size` bytes, zeros for those that are
/// missing. False if the archive takes no more.
bool copy_ranges(archive* to, int file, const file_data& data, std::uint64_t size, reading& done);

} // namespace dsec
