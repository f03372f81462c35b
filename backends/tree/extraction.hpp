#pragma once

#include "backends/rootfs/file_descriptor.hpp"
#include "backends/tree/draft.hpp"
#include "backends/tree/extract.hpp"

#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>
#include <string>
#include <utility>
#include <vector>

/// What the source files of the extractor share.

namespace dsec {

/// Unpacks one archive.
class extraction {
public:
  extraction(archive* from, int root, const extract_rules& rules, std::string_view what,
             const on_refusal& refused, tree_report& done);

  result<void> run();

private:
  struct attributes {
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0;
    timespec modified{};
  };

  struct directory {
    std::string name;
    attributes with;
  };

  /// An open folder and a name in it.
  struct place {
    file_descriptor folder;
    std::string name;
    replacing what = replacing::nothing;
  };

  bool layer() const {
    return rules_.what == extract_rules::use::layer;
  }

  // -- extract.cpp: entries

  error damaged() const;
  error failed(std::string_view step, std::string_view name, int number);
  void refuse(std::string_view why);
  /// Ends it, or tells that the entry is left out.
  result<void> judge(result<void> outcome);
  /// The name in the tree; nothing if it has none there, which is told.
  std::optional<std::string> name_of(std::string_view raw);
  result<void> add(archive_entry* entry);
  result<void> add_file(const std::string& name, archive_entry* entry);
  result<void> copy_content(int file, const std::string& name, std::int64_t size);
  result<void> copy_extended(int file, const std::string& name, archive_entry* entry);
  result<void> add_directory(const std::string& name, archive_entry* entry);
  attributes attributes_of(archive_entry* entry);

  // -- extract_links.cpp

  result<void> add_symlink(const std::string& name, archive_entry* entry);
  result<void> add_hard_link(const std::string& name, std::string_view raw_target);

  // -- extract_places.cpp: where they go

  /// Opens a folder of the tree, for the rules to decide what a link on the way means.
  result<file_descriptor> open_folder(const std::string& name);
  /// The same, and makes what is missing of it: archives need not hold every folder.
  result<file_descriptor> make_folder(const std::string& name);
  result<place> find_place(const std::string& name);
  /// The same, where a file may be placed: later entries replace earlier ones, but never a folder.
  result<place> file_place(const std::string& name);
  /// For later: writing into a folder changes its time.
  result<void> remember(std::string name, const attributes& with);
  result<void> finish_directories();
  result<void> finish_directory(const directory& x);

  archive* from_;
  int root_;
  const extract_rules& rules_;
  std::string_view what_;
  const on_refusal& refused_;
  tree_report& done_;
  std::string current_;   ///< The entry's name as the archive has it.
  int failed_number_ = 0; ///< errno value of what failed last.
  std::vector<directory> directories_;
  std::size_t directories_bytes_ = 0;
};

} // namespace dsec
