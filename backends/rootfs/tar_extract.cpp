#include "backends/rootfs/tar_extract.hpp"

#include "backends/rootfs/archive_paths.hpp"
#include "backends/rootfs/file_descriptor.hpp"
#include "backends/rootfs/tree_policy.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <archive.h>
#include <archive_entry.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <locale.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace dsec {

namespace {

/// libarchive converts names through the thread's locale; in "C" it gives up on those that are not
/// ASCII.
class utf8_locale {
public:
  utf8_locale() : own_{::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)} {
    if (own_)
      previous_ = ::uselocale(own_);
  }

  ~utf8_locale() {
    if (!own_)
      return;
    ::uselocale(previous_);
    ::freelocale(own_);
  }

  utf8_locale(const utf8_locale&) = delete;
  utf8_locale& operator=(const utf8_locale&) = delete;

private:
  locale_t own_ = nullptr;
  locale_t previous_ = nullptr;
};

class extraction {
public:
  extraction(archive* from, file_descriptor root, std::string_view what)
    : from_{from},
      root_{std::move(root)},
      what_{what} {}

  result<void> run() {
    for (;;) {
      archive_entry* entry = nullptr;
      auto status = archive_read_next_header(from_, &entry);
      if (status == ARCHIVE_EOF)
        break;
      if (status == ARCHIVE_RETRY)
        continue;
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
        return damaged();
      if (auto ok = add(entry); !ok)
        return ok;
    }
    if (!refused_.empty())
      return refused_.to_error(what_);
    return finish_directories();
  }

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

  error damaged() const {
    auto* text = archive_error_string(from_);
    return {errc::corrupt, fmt::format("{}: {}", what_, text ? text : "the archive is damaged")};
  }

  error failed(std::string_view step, std::string_view name, int number) const {
    return errno_error(number, fmt::format("{}: {} {}", what_, step, printable(name)));
  }

  static attributes attributes_of(archive_entry* entry) {
    attributes out;
    out.uid = static_cast<uid_t>(archive_entry_uid(entry));
    out.gid = static_cast<gid_t>(archive_entry_gid(entry));
    out.mode = archive_entry_perm(entry) & 07777;
    if (archive_entry_mtime_is_set(entry))
      out.modified = {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
    return out;
  }

  result<void> add(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    if (!raw) {
      refused_.add("?", "unreadable name");
      return {};
    }
    auto name = archive_path(raw);
    if (!name) {
      refused_.add(raw, *raw == '/' ? "absolute name" : "name with \"..\"");
      return {};
    }
    // The root's own attributes are the same for every layer.
    if (name->empty())
      return {};
    if (const char* target = archive_entry_hardlink(entry))
      return add_hard_link(*name, target);
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return add_file(*name, entry);
    case AE_IFDIR:
      return add_directory(*name, attributes_of(entry));
    case AE_IFLNK:
      return add_symlink(*name, entry);
    case AE_IFCHR:
    case AE_IFBLK:
      if (!is_in_dev(*name))
        refused_.add(raw, "device");
      return {};
    case AE_IFIFO:
      refused_.add(raw, "FIFO");
      return {};
    default:
      refused_.add(raw, "unknown kind of file");
      return {};
    }
  }

  /// Opens a folder of the tree as the sandbox would see it: links lead to places inside it.
  result<file_descriptor> open_folder(const std::string& name) {
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    auto number =
      ::syscall(SYS_openat2, root_.get(), name.empty() ? "." : name.c_str(), &how, sizeof how);
    if (number < 0)
      return failed("open folder", name, errno);
    return file_descriptor{static_cast<int>(number)};
  }

  /// The same, and makes what is missing of it: archives need not hold every folder.
  result<file_descriptor> make_folder(const std::string& name) {
    auto folder = open_folder(name);
    if (folder || folder.error().code != errc::not_found || name.empty())
      return folder;
    auto at = find_place(name);
    if (!at)
      return at.error();
    if (::mkdirat(at->folder.get(), at->name.c_str(), 0755) != 0 && errno != EEXIST)
      return failed("make folder", name, errno);
    directories_.push_back({name, {0, 0, 0755, {}}});
    return open_folder(name);
  }

  /// An open folder and a name in it.
  struct place {
    file_descriptor folder;
    std::string name;
  };

  result<place> find_place(const std::string& name) {
    auto [parent_name, last] = split(name);
    auto parent = make_folder(parent_name);
    if (!parent)
      return parent.error();
    return place{std::move(*parent), std::move(last)};
  }

  /// The same, with nothing there: later entries replace earlier ones, but never a folder.
  result<place> free_place(const std::string& name) {
    auto at = find_place(name);
    if (at && ::unlinkat(at->folder.get(), at->name.c_str(), 0) != 0 && errno != ENOENT)
      return failed("replace", name, errno);
    return at;
  }

  result<void> add_file(const std::string& name, archive_entry* entry) {
    auto at = free_place(name);
    if (!at)
      return at.error();
    const auto& [parent, last] = *at;
    file_descriptor file{::openat(parent.get(), last.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file)
      return failed("create", name, errno);
    if (auto ok = copy_content(file.get(), name, archive_entry_size(entry)); !ok)
      return ok;
    auto with = attributes_of(entry);
    if (::fchown(file.get(), with.uid, with.gid) != 0)
      return failed("change owner of", name, errno);
    if (::fchmod(file.get(), with.mode) != 0)
      return failed("change mode of", name, errno);
    if (auto ok = copy_extended(file.get(), name, entry); !ok)
      return ok;
    const timespec times[] = {with.modified, with.modified};
    if (::futimens(file.get(), times) != 0)
      return failed("change time of", name, errno);
    return {};
  }

  result<void> copy_content(int file, const std::string& name, std::int64_t size) {
    for (;;) {
      const void* bytes = nullptr;
      std::size_t count = 0;
      la_int64_t offset = 0;
      auto status = archive_read_data_block(from_, &bytes, &count, &offset);
      if (status == ARCHIVE_EOF)
        break;
      if (status != ARCHIVE_OK)
        return damaged();
      auto* at = static_cast<const char*>(bytes);
      while (count > 0) {
        auto done = ::pwrite(file, at, count, offset);
        if (done < 0)
          return failed("write", name, errno);
        at += done;
        offset += done;
        count -= static_cast<std::size_t>(done);
      }
    }
    // A sparse file may end in a hole.
    if (::ftruncate(file, size) != 0)
      return failed("write", name, errno);
    return {};
  }

  result<void> copy_extended(int file, const std::string& name, archive_entry* entry) {
    archive_entry_xattr_reset(entry);
    const char* key = nullptr;
    const void* value = nullptr;
    std::size_t bytes = 0;
    while (archive_entry_xattr_next(entry, &key, &value, &bytes) == ARCHIVE_OK) {
      std::string_view attribute = key;
      bool kept = attribute.starts_with("user.") || attribute == "security.capability";
      if (!kept || attribute.starts_with("user.overlay."))
        continue;
      if (::fsetxattr(file, key, value, bytes, 0) != 0)
        return failed("set attribute of", name, errno);
    }
    return {};
  }

  result<void> add_directory(const std::string& name, const attributes& with) {
    auto at = find_place(name);
    if (!at)
      return at.error();
    const auto& [parent, last] = *at;

    struct stat status {};

    bool is_other = ::fstatat(parent.get(), last.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
                    && !S_ISDIR(status.st_mode);
    if (is_other && ::unlinkat(parent.get(), last.c_str(), 0) != 0)
      return failed("replace", name, errno);
    if (::mkdirat(parent.get(), last.c_str(), 0755) != 0 && errno != EEXIST)
      return failed("make folder", name, errno);
    directories_.push_back({name, with});
    return {};
  }

  result<void> add_symlink(const std::string& name, archive_entry* entry) {
    const char* target = archive_entry_symlink(entry);
    if (!target || !*target) {
      refused_.add(name, "link to nothing");
      return {};
    }
    if (climbs_out(name, target)) {
      refused_.add(name, fmt::format("link out of the tree, to {}", printable(target)));
      return {};
    }
    auto at = free_place(name);
    if (!at)
      return at.error();
    const auto& [parent, last] = *at;
    if (::symlinkat(target, parent.get(), last.c_str()) != 0)
      return failed("link", name, errno);
    auto with = attributes_of(entry);
    if (::fchownat(parent.get(), last.c_str(), with.uid, with.gid, AT_SYMLINK_NOFOLLOW) != 0)
      return failed("change owner of", name, errno);
    const timespec times[] = {with.modified, with.modified};
    if (::utimensat(parent.get(), last.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
      return failed("change time of", name, errno);
    return {};
  }

  result<void> add_hard_link(const std::string& name, std::string_view raw_target) {
    auto target = archive_path(raw_target);
    if (!target || target->empty()) {
      refused_.add(name, fmt::format("hard link out of the tree, to {}", printable(raw_target)));
      return {};
    }
    if (*target == name)
      return {};
    auto [source_name, source_last] = split(*target);
    auto source = open_folder(source_name);

    struct stat status {};

    if (!source || ::fstatat(source->get(), source_last.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0
        || S_ISDIR(status.st_mode)) {
      refused_.add(name, fmt::format("hard link to {}, which is no file before it",
                                     printable(raw_target)));
      return {};
    }
    auto at = free_place(name);
    if (!at)
      return at.error();
    const auto& [parent, last] = *at;
    if (::linkat(source->get(), source_last.c_str(), parent.get(), last.c_str(), 0) != 0)
      return failed("link", name, errno);
    return {};
  }

  /// Last, because writing into a folder changes its time; deepest last entry wins.
  result<void> finish_directories() {
    for (const auto& x : directories_) {
      auto [parent_name, last] = split(x.name);
      auto parent = open_folder(parent_name);
      if (!parent)
        return parent.error();
      file_descriptor folder{
        ::openat(parent->get(), last.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
      // A later entry put something else in its place.
      if (!folder && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
        continue;
      const timespec times[] = {x.with.modified, x.with.modified};
      if (!folder || ::fchown(folder.get(), x.with.uid, x.with.gid) != 0
          || ::fchmod(folder.get(), x.with.mode) != 0 || ::futimens(folder.get(), times) != 0)
        return failed("finish folder", x.name, errno);
    }
    return {};
  }

  archive* from_;
  file_descriptor root_;
  std::string_view what_;
  refused_entries refused_;
  std::vector<directory> directories_;
};

} // namespace

result<void> extract_tar(int source, const std::filesystem::path& root, std::string_view what) {
  utf8_locale locale;
  file_descriptor folder{::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!folder)
    return errno_error(errno, fmt::format("{}: open {}", what, root.string()));

  struct close_archive {
    void operator()(archive* x) const {
      archive_read_free(x);
    }
  };

  std::unique_ptr<archive, close_archive> reader{archive_read_new()};
  archive_read_support_format_tar(reader.get());
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_filter_bzip2(reader.get());
  archive_read_support_filter_xz(reader.get());
  archive_read_support_filter_zstd(reader.get());
  archive_read_support_filter_lz4(reader.get());
  if (archive_read_open_fd(reader.get(), source, 1 << 18) != ARCHIVE_OK)
    return error{errc::corrupt, fmt::format("{}: {}", what, archive_error_string(reader.get()))};
  return extraction{reader.get(), std::move(folder), what}.run();
}

} // namespace dsec
