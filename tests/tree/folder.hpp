#pragma once

#include "backends/rootfs/file_descriptor.hpp"
#include "backends/tree/extract.hpp"
#include "backends/tree/pack.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dsec::test {

/// A folder of its own.
struct folder {
  std::filesystem::path path;

  folder() {
    auto name = std::filesystem::temp_directory_path().native() + "/dsec-tree-XXXXXX";
    BOOST_TEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }

  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream{path / name, std::ios::binary} << bytes;
  }

  std::string content(const std::string& name) const {
    std::ifstream in{path / name, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator{path})
      all.insert(each.path().filename());
    return all;
  }

  file_descriptor open() const {
    return file_descriptor{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  }
};

/// An archive in memory; `on_read` is called before each piece but the first.
class memory_source final : public archive_source {
public:
  explicit memory_source(std::string bytes, std::function<void()> on_read = nullptr)
    : bytes_{std::move(bytes)},
      on_read_{std::move(on_read)} {}

  result<std::string_view> read() override {
    constexpr std::size_t piece_bytes = 64 << 10;
    if (at_ > 0 && on_read_)
      on_read_();
    auto piece = std::string_view{bytes_}.substr(at_, piece_bytes);
    at_ += piece.size();
    return piece;
  }

private:
  std::string bytes_;
  std::function<void()> on_read_;
  std::size_t at_ = 0;
};

/// Keeps it; `on_write` is called before each piece.
class memory_target final : public archive_target {
public:
  explicit memory_target(std::function<void()> on_write = nullptr)
    : on_write_{std::move(on_write)} {}

  result<void> write(std::string_view x) override {
    if (on_write_)
      on_write_();
    bytes += x;
    return {};
  }

  std::string bytes;

private:
  std::function<void()> on_write_;
};

/// What was left out or off, as "path: why".
struct told {
  std::vector<std::string> lines;

  on_refusal hear() {
    return [this](std::string_view path, std::string_view why) {
      lines.push_back(std::string{path} + ": " + std::string{why});
    };
  }
};

inline result<void> unpack(archive_source& from, const folder& to, told& refused) {
  tree_report done;
  return extract_archive(from, to.open().get(), {}, "unpack", refused.hear(), done);
}

} // namespace dsec::test
