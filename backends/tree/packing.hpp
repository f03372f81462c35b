#pragma once

#include "backends/rootfs/file_descriptor.hpp"
#include "backends/tree/pack.hpp"
#include "backends/tree/pack_file.hpp"

#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

namespace dsec {

/// Packs one tree.
class packing {
public:
  packing(archive* to, const pack_rules& rules, std::string_view what, const on_refusal& refused,
          tree_report& done);

  result<void> run(int folder, const std::string& name);

  /// Why nothing more can be written.
  error stopped() const;

private:
  using found = struct statx;

  /// A file of several names, by the first of them.
  struct linked {
    std::string path;
    std::uint32_t left = 0;
  };

  struct free_entry {
    void operator()(archive_entry* x) const {
      archive_entry_free(x);
    }
  };

  /// 0 or an errno value.
  static int look(int folder, const char* name, found& to);
  void refuse(const std::string& path, std::string_view why);
  /// Good until the next one.
  archive_entry* new_entry(const std::string& path, const found& of);
  result<void> write_header(archive_entry* x);
  result<void> add(int folder, const char* name, const std::string& path, const found& what);
  result<void>
  add_symlink(int folder, const char* name, const std::string& path, const found& what);
  result<void>
  add_directory(int folder, const char* name, const std::string& path, const found& what);
  result<void> add_file(int folder, const char* name, const std::string& path, const found& what);
  /// One whose size is told before it is read.
  result<void>
  add_large(int file, const std::string& path, const found& opened, const file_data& data);
  result<void> left_out(const std::string& path, const found& what, std::string_view why);
  archive_entry* new_file_entry(int file, const std::string& path, const found& of);
  /// Of a size that no file has, if it cannot be told.
  static found how_it_is(int file);
  void tell_if_written(const std::string& path, const found& before, const found& now);
  /// True if its content is in the archive under another name.
  bool add_known_link(const std::string& path, const found& what, result<void>& outcome);

  archive* to_;
  const pack_rules& rules_;
  std::string_view what_;
  const on_refusal& refused_;
  tree_report& done_;
  std::uint64_t mount_ = 0;
  std::unique_ptr<archive_entry, free_entry> entry_{archive_entry_new()};
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, linked> linked_;
};

} // namespace dsec
