#pragma once

#include <archive.h>
#include <cstdint>
#include <string>
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

/// Extended attributes; none where they cannot be read.
std::vector<file_attribute> attributes_of(int file);

/// Writes the content of the entry under way: exactly `size` bytes. `bytes` counts what was read.
/// `complete` becomes false if the file had fewer. False if the archive takes no more.
bool copy_ranges(archive* to, int file, const file_data& data, std::uint64_t size,
                 std::uint64_t& bytes, bool& complete);

} // namespace dsec
