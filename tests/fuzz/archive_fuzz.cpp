// An archive that anybody may have made, as a layer or into a tree that an agent has furnished:
// whatever its entries are called and wherever links lead, nothing outside the folder is written,
// linked to or changed, and of what is refused nothing is there. What was unpacked can be packed.

#include "backends/rootfs/file_descriptor.hpp"
#include "backends/rootfs/tar_extract.hpp"
#include "backends/tree/extract.hpp"
#include "backends/tree/pack.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/throwaway.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>

using namespace dsec;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t block_bytes = 512;

/// One header of the ustar format.
struct header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
  char linkname[100], magic[8], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};

static_assert(sizeof(header) == block_bytes);

template <std::size_t N>
void put(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(N, text.size()));
}

template <std::size_t N>
void put_octal(char (&field)[N], std::uint64_t number) {
  for (std::size_t i = N - 1; i-- > 0; number /= 8)
    field[i] = static_cast<char>('0' + number % 8);
}

/// Appends `to` a header whose checksum is right, and its content.
void append(std::string& to, header head, std::string_view content) {
  std::memset(head.checksum, ' ', sizeof head.checksum);
  unsigned sum = 0;
  for (std::size_t i = 0; i < sizeof head; ++i)
    sum += reinterpret_cast<unsigned char*>(&head)[i];
  put_octal(head.checksum, sum);
  to.append(reinterpret_cast<char*>(&head), sizeof head);
  to.append(content);
  to.resize((to.size() + block_bytes - 1) / block_bytes * block_bytes);
}

/// Few parts, so that entries meet; ways out, absolute and climbing; and any bytes.
std::string path_of(fuzz::input& in) {
  static const char* const parts[] = {"a",
                                      "b",
                                      "c",
                                      "d",
                                      "..",
                                      ".",
                                      "/",
                                      "dev",
                                      "mnt",
                                      "/mnt/outside",
                                      "/mnt/outside/secret",
                                      "mnt/outside/secret",
                                      "../outside/secret",
                                      "../../mnt/outside",
                                      "\xff\xfe",
                                      "caf\xc3\xa9"};
  std::string path;
  for (auto n = in.below(6); n > 0; --n) {
    if (!path.empty() && in.flag())
      path += '/';
    if (const auto which = in.below(20); which < sizeof parts / sizeof *parts)
      path += parts[which];
    else if (which < 19)
      path += in.text();
    else
      path += std::string(in.number<std::uint16_t>() % 5000, 'x');
  }
  return path;
}

/// A pax record: its length counts itself.
std::string record(std::string_view key, std::string_view value) {
  const auto rest = key.size() + value.size() + 3;
  auto size = rest + std::to_string(rest).size();
  size = rest + std::to_string(size).size();
  return std::to_string(size) + ' ' + std::string{key} + '=' + std::string{value} + '\n';
}

header head_of(char type, std::string_view name, std::uint64_t size) {
  header head{};
  put(head.name, name);
  put_octal(head.mode, 0644);
  put_octal(head.size, size);
  put(head.magic, std::string_view{"ustar\00000", 8});
  head.type = type;
  return head;
}

/// Records of the pax format in front of an entry: names without limit, attributes, holes, times.
void append_pax(std::string& to, fuzz::input& in) {
  static const char* const keys[] = {"path",
                                     "linkpath",
                                     "size",
                                     "mtime",
                                     "uid",
                                     "gid",
                                     "uname",
                                     "SCHILY.xattr.user.note",
                                     "SCHILY.xattr.user.overlay.opaque",
                                     "SCHILY.xattr.security.capability",
                                     "SCHILY.xattr.trusted.overlay.redirect",
                                     "LIBARCHIVE.xattr.user.b64",
                                     "SCHILY.acl.access",
                                     "SCHILY.fflags",
                                     "GNU.sparse.major",
                                     "GNU.sparse.minor",
                                     "GNU.sparse.name",
                                     "GNU.sparse.realsize",
                                     "GNU.sparse.map",
                                     "hdrcharset",
                                     "LIBARCHIVE.symlinktype",
                                     "SCHILY.devmajor"};
  static const char* const numbers[] = {"0",           "1",          "511",
                                        "-1",          "1.5",        "9223372036854775807",
                                        "99999999999", "4294967295", "0,1,600,5",
                                        "BINARY"};
  std::string content;
  for (auto n = 1 + in.below(4); n > 0; --n) {
    const auto* const key = in.one_of(keys);
    const auto how = in.below(3);
    content += record(key, how == 0 ? path_of(in) : how == 1 ? in.one_of(numbers) : in.text());
  }
  append(to, head_of(in.below(8) == 0 ? 'g' : 'x', "pax", content.size()), content);
}

void append_entry(std::string& to, fuzz::input& in) {
  static const char types[] = {'0', '0', '0', '1', '1', '2', '2', '2',
                               '5', '5', '3', '4', '6', '7', 'S', '\0'};
  static const std::uint64_t times[] = {0, 1'600'000'000, 1ull << 32, 0777777777777};
  if (in.below(3) == 0)
    append_pax(to, in);
  // GNU's long names and links.
  for (const char type : {'L', 'K'})
    if (in.below(8) == 0) {
      const auto name = path_of(in);
      append(to, head_of(type, "././@LongLink", name.size() + 1), name + '\0');
    }
  const auto type = in.one_of(types);
  const auto content = type == '0' || in.below(8) == 0 ? in.text() : std::string{};
  auto head =
    head_of(type, path_of(in), in.below(16) == 0 ? in.number<std::uint64_t>() : content.size());
  put(head.linkname, path_of(in));
  put_octal(head.mode, in.number<std::uint16_t>());
  put_octal(head.uid, in.number<std::uint16_t>());
  put_octal(head.gid, in.byte());
  put_octal(head.mtime, in.one_of(times));
  if (in.below(8) == 0)
    put(head.prefix, path_of(in));
  append(to, head, content);
}

/// What stands in the tree may be files, folders and links only, and none of it the secret.
void check_tree() {
  struct stat secret {};

  fuzz::claim(::lstat("/mnt/outside/secret", &secret) == 0, "the secret is there");
  std::error_code stopped;
  for (fs::recursive_directory_iterator at{fuzz::throwaway::root, stopped}, end; at != end;
       at.increment(stopped)) {
    struct stat s {};

    if (::lstat(at->path().c_str(), &s) != 0)
      continue; // Longer than a path may be.
    fuzz::claim(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode) || S_ISLNK(s.st_mode),
                "only files, folders and links are made", at->path().native());
    fuzz::claim(s.st_ino != secret.st_ino, "nothing outside is linked to", at->path().native());
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  fuzz::throwaway::enter(false);
  return 0;
}

namespace {

/// What stands in the tree before: links out of it, where entries are likely to go.
void furnish(fuzz::input& in) {
  static const char* const targets[] = {"/mnt/outside", "../outside", "/",
                                        "..",           "b",          "/mnt/outside/secret"};
  for (const char* name : {"a", "b", "c"}) {
    const auto path = std::string{fuzz::throwaway::root} + '/' + name;
    switch (in.below(4)) {
    case 0:
      fuzz::claim(::mkdir(path.c_str(), 0755) == 0, "make a folder");
      break;
    case 1:
      fuzz::claim(::symlink(in.one_of(targets), path.c_str()) == 0, "make a link");
      break;
    default:
      break;
    }
  }
}

void check_layer(int archive) {
  const auto done = extract_tar(archive, fuzz::throwaway::root, "import");
  if (done)
    return;
  const auto& why = done.error();
  // The machine is read-only here: who meets that has left the folder.
  fuzz::claim(!why.message.ends_with("Read-only file system"), "nothing leaves the folder",
              why.message);
  fuzz::claim(why.code == errc::invalid_argument || why.code == errc::corrupt
                || why.code == errc::exhausted,
              "what is wrong with an archive is said of the archive", why.message);
}

class counting_target final : public archive_target {
public:
  result<void> write(std::string_view bytes) override {
    bytes_ += bytes.size();
    return {};
  }

private:
  std::size_t bytes_ = 0;
};

void check_tree_import(int archive, const extract_rules& rules) {
  const file_descriptor root{::open(fuzz::throwaway::root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  archive_file_source from{archive};
  tree_report unpacked;
  const auto done = extract_archive(
    from, root.get(), rules, "unpack",
    [](std::string_view, std::string_view why) {
      fuzz::claim(!why.ends_with("Read-only file system"), "nothing leaves the folder", why);
    },
    unpacked);
  if (!done)
    fuzz::claim(done.error().code == errc::corrupt || done.error().code == errc::exhausted,
                "only what stops everything ends it", done.error().message);
  counting_target to;
  tree_report packed;
  const auto again = pack_tree(
    root.get(), ".", {}, to, "pack", [](std::string_view, std::string_view) {}, packed);
  fuzz::claim(bool{again}, "what was unpacked can be packed", again ? "" : again.error().message);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  const bool layer = in.flag();
  const bool raw = in.below(4) == 0;
  extract_rules rules;
  rules.set_root = in.flag();
  if (in.flag())
    rules.top = "a";
  if (!layer)
    furnish(in);
  std::string tar;
  if (raw)
    tar = in.take_all();
  for (int entries = 0; !in.empty() && entries < 40; ++entries)
    append_entry(tar, in);
  if (!raw)
    tar.append(2 * block_bytes, '\0');

  file_descriptor file{::memfd_create("archive", MFD_CLOEXEC)};
  fuzz::claim(::write(file.get(), tar.data(), tar.size()) == static_cast<ssize_t>(tar.size())
                && ::lseek(file.get(), 0, SEEK_SET) == 0,
              "write the archive");
  if (layer)
    check_layer(file.get());
  else
    check_tree_import(file.get(), rules);
  fuzz::throwaway::check_outside();
  check_tree();
  fuzz::throwaway::clear();
  return 0;
}
