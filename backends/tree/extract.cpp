#include "backends/tree/extract.hpp"

#include "backends/rootfs/archive_paths.hpp"
#include "backends/tree/extraction.hpp"
#include "backends/tree/name_bytes.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <set>
#include <unistd.h>

namespace dsec {

namespace {

constexpr mode_t set_id_bits = S_ISUID | S_ISGID;

/// What stops every entry, not this one.
bool stops_everything(int number) {
  switch (number) {
  case ENOSPC:
  case EDQUOT:
  case EIO:
  case ENOMEM:
  case EMFILE:
  case ENFILE:
  case EROFS:
    return true;
  default:
    return false;
  }
}

/// What libarchive stumbled over; it does not always say.
error damaged_archive(archive* from, std::string_view what) {
  auto* text = archive_error_string(from);
  // zstd and xz say so by name.
  auto code = text && std::strstr(text, "memory") ? errc::exhausted : errc::corrupt;
  return {code, fmt::format("{}: {}", what, text ? text : "the archive is damaged")};
}

la_ssize_t read_bytes(archive* to, void* from, const void** bytes) {
  auto got = static_cast<archive_source*>(from)->read();
  if (!got) {
    archive_set_error(to, EIO, "%s", got.error().message.c_str());
    return -1;
  }
  *bytes = got->data();
  return static_cast<la_ssize_t>(got->size());
}

struct extended_attribute {
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
};

/// Each once: some archives say each of them in two ways.
std::vector<extended_attribute> extended_of(archive_entry* entry) {
  std::vector<extended_attribute> all;
  std::set<std::string_view> names;
  extended_attribute x;
  archive_entry_xattr_reset(entry);
  while (archive_entry_xattr_next(entry, &x.name, &x.value, &x.bytes) == ARCHIVE_OK)
    if (names.insert(x.name).second)
      all.push_back(x);
  return all;
}

} // namespace

extraction::extraction(archive* from, int root, const extract_rules& rules, std::string_view what,
                       const on_refusal& refused, tree_report& done)
  : from_{from},
    root_{root},
    rules_{rules},
    what_{what},
    refused_{refused},
    done_{done} {}

result<void> extraction::run() {
  for (;;) {
    archive_entry* entry = nullptr;
    auto status = archive_read_next_header(from_, &entry);
    if (status == ARCHIVE_EOF)
      return finish_directories();
    if (status == ARCHIVE_RETRY)
      continue;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
      return damaged();
    if (auto ok = judge(add(entry)); !ok)
      return ok;
  }
}

error extraction::damaged() const {
  return damaged_archive(from_, what_);
}

error extraction::failed(std::string_view step, std::string_view name, int number) {
  failed_number_ = number;
  auto why = errno_error(number, fmt::format("{}: {} {}", what_, step, printable(name)));
  // What no other machine would unpack either: a file below a file, say, or a name too long.
  if (!stops_everything(number))
    why.code = errc::invalid_argument;
  return why;
}

void extraction::refuse(std::string_view why) {
  std::string_view name = current_;
  while (name.size() > 1 && name.ends_with('/'))
    name.remove_suffix(1);
  refused_(name, why);
}

result<void> extraction::judge(result<void> outcome) {
  if (outcome || layer() || failed_number_ == 0 || stops_everything(failed_number_))
    return outcome;
  switch (failed_number_) {
  case ELOOP:
    refuse("through a symbolic link");
    break;
  case EISDIR:
    refuse("a directory is there");
    break;
  case ENOTDIR:
    refuse("through what is no directory");
    break;
  default:
    refuse(std::strerror(failed_number_));
  }
  return {};
}

extraction::attributes extraction::attributes_of(archive_entry* entry) {
  attributes out;
  out.mode = archive_entry_perm(entry) & 07777;
  if (archive_entry_mtime_is_set(entry))
    out.modified = {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
  if (layer()) {
    out.uid = static_cast<uid_t>(archive_entry_uid(entry));
    out.gid = static_cast<gid_t>(archive_entry_gid(entry));
    return out;
  }
  out.uid = ::geteuid();
  out.gid = ::getegid();
  if (out.mode & set_id_bits)
    refuse("moved without its set-user-ID or set-group-ID bit");
  out.mode &= ~set_id_bits;
  return out;
}

std::optional<std::string> extraction::name_of(std::string_view raw) {
  auto name = archive_path(raw);
  if (!name) {
    refuse(raw.starts_with('/') ? "absolute name" : "name with \"..\"");
    return name;
  }
  if (rules_.top) {
    auto rest = name->find('/');
    *name = *rules_.top + (rest == std::string::npos ? "" : name->substr(rest));
  }
  return name;
}

result<void> extraction::add(archive_entry* entry) {
  failed_number_ = 0;
  const char* raw = archive_entry_pathname(entry);
  current_ = raw ? raw : "?";
  if (!raw) {
    refuse("unreadable name");
    return {};
  }
  auto name = name_of(raw);
  if (!name)
    return {};
  if (name->empty()) {
    // The root's own attributes are the same for every layer.
    if (!rules_.set_root || archive_entry_filetype(entry) != AE_IFDIR)
      return {};
    ++done_.entries;
    return remember("", attributes_of(entry));
  }
  if (const char* target = archive_entry_hardlink(entry))
    return add_hard_link(*name, target);
  switch (archive_entry_filetype(entry)) {
  case AE_IFREG:
    return add_file(*name, entry);
  case AE_IFDIR:
    return add_directory(*name, entry);
  case AE_IFLNK:
    return add_symlink(*name, entry);
  case AE_IFCHR:
  case AE_IFBLK:
    if (!layer() || !name->starts_with("dev/"))
      refuse("device");
    return {};
  case AE_IFIFO:
    refuse("FIFO");
    return {};
  case AE_IFSOCK:
    refuse("socket");
    return {};
  default:
    refuse("unknown kind of file");
    return {};
  }
}

result<void> extraction::add_file(const std::string& name, archive_entry* entry) {
  auto at = file_place(name);
  if (!at)
    return at.error();
  const auto& [parent, last, what] = *at;
  draft file{parent.get()};
  if (file.file() < 0)
    return failed("create", name, errno);
  auto with = attributes_of(entry);
  const timespec times[] = {with.modified, with.modified};
  auto ok = copy_content(file.file(), name, archive_entry_size(entry));
  if (ok && ::fchown(file.file(), with.uid, with.gid) != 0)
    ok = failed("change owner of", name, errno);
  if (ok && ::fchmod(file.file(), with.mode) != 0)
    ok = failed("change mode of", name, errno);
  if (ok)
    ok = copy_extended(file.file(), name, entry);
  if (ok && ::futimens(file.file(), times) != 0)
    ok = failed("change time of", name, errno);
  if (!ok)
    return ok;
  if (int number = file.place(last, what))
    return failed("replace", name, number);
  ++done_.entries;
  return {};
}

result<void> extraction::copy_content(int file, const std::string& name, std::int64_t size) {
  std::int64_t end = 0;
  for (;;) {
    const void* bytes = nullptr;
    std::size_t count = 0;
    la_int64_t offset = 0;
    auto status = archive_read_data_block(from_, &bytes, &count, &offset);
    if (status == ARCHIVE_EOF)
      break;
    if (status != ARCHIVE_OK) {
      failed_number_ = 0;
      return damaged();
    }
    auto* at = static_cast<const char*>(bytes);
    done_.bytes += count;
    while (count > 0) {
      auto done = ::pwrite(file, at, count, offset);
      if (done < 0)
        return failed("write", name, errno);
      at += done;
      offset += done;
      count -= static_cast<std::size_t>(done);
    }
    end = std::max<std::int64_t>(end, offset);
  }
  // A sparse file may end in a hole.
  if (end != size && ::ftruncate(file, size) != 0)
    return failed("write", name, errno);
  return {};
}

result<void> extraction::copy_extended(int file, const std::string& name, archive_entry* entry) {
  for (const auto& each : extended_of(entry)) {
    std::string_view attribute = each.name;
    bool kept = attribute.starts_with("user.") || (layer() && attribute == "security.capability");
    kept = kept && !attribute.starts_with("user.overlay.");
    bool set = kept && ::fsetxattr(file, each.name, each.value, each.bytes, 0) == 0;
    if (!set && layer() && kept)
      return failed("set attribute of", name, errno);
    if (kept && !set && stops_everything(errno))
      return failed("set attribute of", name, errno);
    if (!set && !layer())
      refuse(fmt::format("moved without its attribute {}", printable(attribute)));
  }
  return {};
}

result<void> extraction::add_directory(const std::string& name, archive_entry* entry) {
  auto at = find_place(name);
  if (!at)
    return at.error();
  const auto& [parent, last, _] = *at;

  struct stat status {};

  bool is_other = ::fstatat(parent.get(), last.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
                  && !S_ISDIR(status.st_mode);
  if (is_other && !layer()) {
    refuse(S_ISLNK(status.st_mode) ? "a symbolic link is there" : "a file is there");
    return {};
  }
  if (is_other && ::unlinkat(parent.get(), last.c_str(), 0) != 0)
    return failed("replace", name, errno);
  if (::mkdirat(parent.get(), last.c_str(), layer() ? 0755 : 0700) != 0 && errno != EEXIST)
    return failed("make folder", name, errno);
  for (const auto& each : extended_of(entry))
    if (!layer())
      refuse(fmt::format("moved without its attribute {}", printable(each.name)));
  ++done_.entries;
  return remember(name, attributes_of(entry));
}

result<void> extract_archive(archive_source& from, int root, const extract_rules& rules,
                             std::string_view what, const on_refusal& refused, tree_report& done) {
  name_bytes names{name_bytes::use::reading};

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
  if (archive_read_open(reader.get(), &from, nullptr, read_bytes, nullptr) != ARCHIVE_OK)
    return damaged_archive(reader.get(), what);
  if (auto ok = extraction{reader.get(), root, rules, what, refused, done}.run(); !ok)
    return ok;
  // Behind the end of the archive is padding, which the writer wants to be rid of.
  for (;;) {
    auto rest = from.read();
    if (!rest || rest->empty())
      return rest ? result<void>{} : result<void>{rest.error()};
  }
}

} // namespace dsec
