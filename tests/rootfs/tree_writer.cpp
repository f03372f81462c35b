#include "tests/rootfs/tree_writer.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace dsec {

namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream{path, std::ios::binary} << content;
}

void write_sample_tree(const fs::path& root, std::uint64_t seed) {
  std::mt19937_64 random{seed};

  struct entry {
    std::string name;
    std::size_t bytes = 0;
  };

  std::vector<entry> files;
  for (std::size_t i = 0; i < 120; ++i)
    files.push_back({"d" + std::to_string(i % 7) + "/f" + std::to_string(i), i * i * 7 % 30'000});
  files.push_back({"d1/name with \xff\xfe and\nnewline", 10});
  files.push_back({"d1/caf\xc3\xa9", 11});
  std::shuffle(files.begin(), files.end(), random);
  for (const auto& x : files) {
    std::string content(x.bytes, '\0');
    for (std::size_t i = 0; i < content.size(); ++i)
      content[i] = static_cast<char>(i * 31 + x.bytes);
    write_file(root / x.name, content);
  }
  // Of a pair of hard links either may be the first. Their names are of one length, as their times
  // follow it.
  for (int i : {7, 14, 21, 28}) {
    auto a = root / ("d0/f" + std::to_string(i)), b = root / ("d3/L" + std::to_string(i));
    if (random() % 2 == 0)
      fs::rename(a, b), fs::create_hard_link(b, a);
    else
      fs::create_hard_link(a, b);
  }
  fs::create_symlink("/usr/bin/../x", root / "absolute");
  fs::create_symlink("d0/f7", root / "relative");
  fs::create_directories(root / "empty");
  if (::chmod((root / "d0/f14").c_str(), 04755) != 0
      || ::chmod((root / "empty").c_str(), 01777) != 0
      || ::lchown((root / "d2/f2").c_str(), 1000, 70'000) != 0)
    throw std::runtime_error{"write sample tree"};

  std::vector<fs::path> all;
  for (const auto& x : fs::recursive_directory_iterator{root})
    all.push_back(x.path());
  for (const auto& x : all) {
    auto seconds = static_cast<time_t>(1'600'000'000 + x.filename().native().size());
    const timespec times[] = {{seconds, 123}, {seconds, 123}};
    if (::utimensat(AT_FDCWD, x.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
      throw std::runtime_error{"set time"};
  }
}

} // namespace dsec
