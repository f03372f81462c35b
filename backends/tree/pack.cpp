#include "backends/tree/pack.hpp"

#include "backends/tree/name_bytes.hpp"
#include "backends/tree/pack_file.hpp"
#include "backends/tree/packing.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace dsec {

namespace {

/// No disk holds as much: the rest is holes, and even those take their time.
constexpr std::uint64_t file_bytes_max = 1ull << 50;

constexpr std::size_t path_bytes_max = 4095;
constexpr mode_t set_id_bits = S_ISUID | S_ISGID;
/// Files with several names that are remembered; more are packed once per name.
constexpr std::size_t linked_max = 100'000;

std::string_view kind_of(mode_t mode) {
  if (S_ISCHR(mode) || S_ISBLK(mode))
    return "device";
  if (S_ISFIFO(mode))
    return "FIFO";
  if (S_ISSOCK(mode))
    return "socket";
  return "unknown kind of file";
}

bool can_be_packed(mode_t mode) {
  return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

la_ssize_t write_bytes(archive* to, void* target, const void* bytes, std::size_t count) {
  auto ok = static_cast<archive_target*>(target)->write({static_cast<const char*>(bytes), count});
  if (ok)
    return static_cast<la_ssize_t>(count);
  archive_set_error(to, EPIPE, "%s", ok.error().message.c_str());
  return -1;
}

timespec time_of(const statx_timestamp& from) {
  return {from.tv_sec, from.tv_nsec};
}

} // namespace

std::pair<std::string, std::string> folder_and_name(const std::string& path) {
  auto end = path.find_last_not_of('/');
  auto trimmed = path.substr(0, end == std::string::npos ? 0 : end + 1);
  auto slash = trimmed.rfind('/');
  auto last = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  if (last.empty() || last == "." || last == "..")
    return {path, "."};
  if (slash == std::string::npos)
    return {".", last};
  return {slash == 0 ? "/" : trimmed.substr(0, slash), last};
}

packing::packing(archive* to, const pack_rules& rules, std::string_view what,
                 const on_refusal& refused, tree_report& done)
  : to_{to},
    rules_{rules},
    what_{what},
    refused_{refused},
    done_{done} {}

result<void> packing::run(int folder, const std::string& name) {
  found top;
  if (int number = look(folder, name.c_str(), top))
    return errno_error(number, fmt::format("{}: look at {}", what_, printable(name)));
  if (!can_be_packed(top.stx_mode))
    return error{errc::invalid_argument,
                 fmt::format("{}: it is a {}", what_, kind_of(top.stx_mode))};
  mount_ = top.stx_mnt_id;
  return add(folder, name.c_str(), rules_.top, top);
}

int packing::look(int folder, const char* name, found& to) {
  return ::statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                 STATX_BASIC_STATS | STATX_MNT_ID, &to)
             == 0
           ? 0
           : errno;
}

void packing::refuse(const std::string& path, std::string_view why) {
  refused_(path.empty() ? "." : path, why);
}

error packing::stopped() const {
  auto* text = archive_error_string(to_);
  return {errc::unavailable, fmt::format("{}: {}", what_, text ? text : "cannot write")};
}

archive_entry* packing::new_entry(const std::string& path, const found& of) {
  archive_entry_clear(entry_.get());
  auto* x = entry_.get();
  auto name = !S_ISDIR(of.stx_mode) ? path : path.empty() ? "./" : path + "/";
  archive_entry_set_pathname(x, name.c_str());
  archive_entry_set_uid(x, of.stx_uid);
  archive_entry_set_gid(x, of.stx_gid);
  mode_t mode = of.stx_mode;
  if (!S_ISLNK(mode) && (mode & set_id_bits)) {
    refuse(path, "moved without its set-user-ID or set-group-ID bit");
    mode &= ~set_id_bits;
  }
  archive_entry_set_mode(x, mode);
  auto modified = time_of(of.stx_mtime);
  archive_entry_set_mtime(x, modified.tv_sec, modified.tv_nsec);
  return x;
}

result<void> packing::write_header(archive_entry* x) {
  // libarchive writes a name as text if it is UTF-8, and takes surrogates for that, which it
  // changes. An owner's name that is none makes the entry a binary one.
  auto has_surrogates = [](const char* name) {
    for (; name && *name; ++name)
      if (static_cast<unsigned char>(name[0]) == 0xed
          && static_cast<unsigned char>(name[1]) >= 0xa0)
        return true;
    return false;
  };
  if (has_surrogates(archive_entry_pathname(x)) || has_surrogates(archive_entry_symlink(x))
      || has_surrogates(archive_entry_hardlink(x)))
    archive_entry_set_uname(x, "\xff");
  auto status = archive_write_header(to_, x);
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
    return stopped();
  ++done_.entries;
  return {};
}

result<void>
packing::add(int folder, const char* name, const std::string& path, const found& what) {
  if (path.size() > path_bytes_max) {
    refuse(path, "its path has more than 4095 bytes");
    return {};
  }
  if (S_ISDIR(what.stx_mode))
    return add_directory(folder, name, path, what);
  if (S_ISLNK(what.stx_mode))
    return add_symlink(folder, name, path, what);
  if (S_ISREG(what.stx_mode))
    return add_file(folder, name, path, what);
  refuse(path, kind_of(what.stx_mode));
  return {};
}

result<void>
packing::add_symlink(int folder, const char* name, const std::string& path, const found& what) {
  char target[path_bytes_max + 1];
  auto n = ::readlinkat(folder, name, target, sizeof target - 1);
  if (n < 0) {
    refuse(path, std::strerror(errno));
    return {};
  }
  target[n] = 0;
  auto* x = new_entry(path, what);
  archive_entry_set_symlink(x, target);
  return write_header(x);
}

result<void>
packing::add_directory(int folder, const char* name, const std::string& path, const found& what) {
  if (rules_.one_file_system && what.stx_mnt_id != mount_) {
    refuse(path, "another file system is mounted there");
    return {};
  }

  struct close_directory {
    void operator()(DIR* x) const {
      ::closedir(x);
    }
  };

  int fd = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  std::unique_ptr<DIR, close_directory> open{fd < 0 ? nullptr : ::fdopendir(fd)};
  if (!open) {
    refuse(path, std::strerror(errno));
    if (fd >= 0)
      ::close(fd);
    return {};
  }
  for (const auto& each : attributes_of(fd))
    refuse(path, fmt::format("moved without its attribute {}", printable(each.name)));
  if (auto ok = write_header(new_entry(path, what)); !ok)
    return ok;
  for (;;) {
    errno = 0;
    auto* each = ::readdir(open.get());
    if (!each) {
      if (errno != 0)
        refuse(path, fmt::format("not read to its end: {}", std::strerror(errno)));
      return {};
    }
    if (std::strcmp(each->d_name, ".") == 0 || std::strcmp(each->d_name, "..") == 0)
      continue;
    auto below = path.empty() ? std::string{each->d_name} : path + "/" + each->d_name;
    found child;
    if (int number = look(fd, each->d_name, child)) {
      // Whoever works in the tree removes files, too.
      if (number != ENOENT)
        refuse(below, std::strerror(number));
      continue;
    }
    if (auto ok = add(fd, each->d_name, below, child); !ok)
      return ok;
  }
}

bool packing::add_known_link(const std::string& path, const found& what, result<void>& outcome) {
  if (what.stx_nlink < 2)
    return false;
  auto key = std::tuple{what.stx_dev_major, what.stx_dev_minor, what.stx_ino};
  auto known = linked_.find(key);
  if (known == linked_.end()) {
    if (linked_.size() < linked_max)
      linked_.emplace(key, linked{path, what.stx_nlink - 1});
    return false;
  }
  auto* x = new_entry(path, what);
  archive_entry_set_hardlink(x, known->second.path.c_str());
  outcome = write_header(x);
  if (--known->second.left == 0)
    linked_.erase(known);
  return true;
}

result<void>
packing::add_file(int folder, const char* name, const std::string& path, const found& what) {
  result<void> linked_as;
  if (add_known_link(path, what, linked_as))
    return linked_as;
  file_descriptor file{
    ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  found opened;
  if (!file || ::statx(file.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &opened) != 0)
    return left_out(path, what, std::strerror(errno));
  if (!S_ISREG(opened.stx_mode))
    return left_out(path, what, "it turned into something else");
  if (opened.stx_size > file_bytes_max)
    return left_out(path, what, "larger than 1 PiB");
  auto data = data_ranges(file.get(), opened.stx_size, opened.stx_blocks * 512);
  if (data.has_holes || opened.stx_size > bytes_read_first)
    return add_large(file.get(), path, opened, data);
  std::string held;
  auto content = content_of(file.get(), opened.stx_size, held);
  if (content.number == EFBIG)
    return left_out(path, what,
                    fmt::format("it says that it has 0 bytes and has more than {}, which is the "
                                "limit for such a file",
                                unsized_bytes_max));
  if (content.number != 0)
    return left_out(path, what, std::strerror(content.number));
  auto* x = new_file_entry(file.get(), path, opened);
  archive_entry_set_size(x, static_cast<la_int64_t>(content.bytes.size()));
  if (auto ok = write_header(x); !ok)
    return ok;
  auto count = static_cast<la_ssize_t>(content.bytes.size());
  if ((count > 0 && archive_write_data(to_, content.bytes.data(), content.bytes.size()) != count)
      || archive_write_finish_entry(to_) < ARCHIVE_WARN)
    return stopped();
  done_.bytes += content.bytes.size();
  auto now = how_it_is(file.get());
  if (now.stx_size != opened.stx_size)
    refuse(path, fmt::format("its size changed while it was read; moved with the {} bytes that it "
                             "had then",
                             count));
  else
    tell_if_written(path, opened, now);
  return {};
}

result<void> packing::left_out(const std::string& path, const found& what, std::string_view why) {
  // Its next name may have better luck.
  if (what.stx_nlink > 1)
    linked_.erase({what.stx_dev_major, what.stx_dev_minor, what.stx_ino});
  refuse(path, why);
  return {};
}

archive_entry* packing::new_file_entry(int file, const std::string& path, const found& of) {
  auto* x = new_entry(path, of);
  for (const auto& each : attributes_of(file))
    if (each.name.starts_with("user.") && !each.name.starts_with("user.overlay."))
      archive_entry_xattr_add_entry(x, each.name.c_str(), each.value.data(), each.value.size());
    else
      refuse(path, fmt::format("moved without its attribute {}", printable(each.name)));
  return x;
}

packing::found packing::how_it_is(int file) {
  found now{};
  if (::statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &now) != 0)
    now.stx_size = ~std::uint64_t{0};
  return now;
}

void packing::tell_if_written(const std::string& path, const found& before, const found& now) {
  if (now.stx_mtime.tv_sec != before.stx_mtime.tv_sec
      || now.stx_mtime.tv_nsec != before.stx_mtime.tv_nsec)
    refuse(path, "moved, but it was written while it was read");
}

result<void>
packing::add_large(int file, const std::string& path, const found& opened, const file_data& data) {
  // Better left out than a file of zeros.
  if (char first; ::pread(file, &first, 1, data.ranges.front().offset) < 0)
    return left_out(path, opened, std::strerror(errno));
  auto* x = new_file_entry(file, path, opened);
  archive_entry_set_size(x, static_cast<la_int64_t>(opened.stx_size));
  if (data.has_holes)
    for (const auto& range : data.ranges)
      archive_entry_sparse_add_entry(x, range.offset, range.bytes);
  if (auto ok = write_header(x); !ok)
    return ok;
  reading done;
  auto ok = copy_ranges(to_, file, data, opened.stx_size, done);
  done_.bytes += done.bytes;
  if (!ok || archive_write_finish_entry(to_) < ARCHIVE_WARN)
    return stopped();
  auto now = how_it_is(file);
  if (done.number != 0)
    refuse(path, fmt::format("moved, but with zeros where it could not be read: {}",
                             std::strerror(done.number)));
  else if (!done.complete || now.stx_size != opened.stx_size)
    refuse(path, fmt::format("its size changed while it was read; moved with the {} bytes that it "
                             "began with, zeros where they were gone",
                             opened.stx_size));
  else
    tell_if_written(path, opened, now);
  return {};
}

result<void> pack_tree(int folder, const std::string& name, const pack_rules& rules,
                       archive_target& to, std::string_view what, const on_refusal& refused,
                       tree_report& done) {
  name_bytes names{name_bytes::use::writing};

  struct close_archive {
    void operator()(archive* x) const {
      archive_write_free(x);
    }
  };

  std::unique_ptr<archive, close_archive> writer{archive_write_new()};
  archive_write_set_format_pax(writer.get());
  archive_write_set_bytes_per_block(writer.get(), 64 << 10);
  archive_write_set_bytes_in_last_block(writer.get(), 1);
  packing work{writer.get(), rules, what, refused, done};
  if (archive_write_open(writer.get(), &to, nullptr, write_bytes, nullptr) != ARCHIVE_OK)
    return work.stopped();
  if (auto ok = work.run(folder, name); !ok) {
    // Nothing more goes out: what has is no whole archive.
    archive_write_fail(writer.get());
    return ok;
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK)
    return work.stopped();
  return {};
}

} // namespace dsec
