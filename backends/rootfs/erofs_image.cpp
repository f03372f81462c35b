#include "backends/rootfs/erofs_image.hpp"

#include "backends/rootfs/child_process.hpp"
#include "backends/rootfs/file_descriptor.hpp"
#include "state/crc32c.hpp"
#include "state/digest.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dsec {

namespace {

constexpr off_t superblock_offset = 1024;
constexpr std::size_t block_bytes = 4096;
constexpr std::uint32_t superblock_magic = 0xe0f5e1e2;
constexpr std::size_t inode_slot_bytes = 32;

/// Offsets of what is made equal, as the kernel's erofs_fs.h lays it out (little endian).
namespace at {
constexpr std::size_t checksum = 4, root_nid = 14, build_time = 24, build_time_ns = 32,
                      meta_block = 40;
constexpr std::size_t format = 0, mode = 4, uid = 24, gid = 28, mtime = 32, mtime_ns = 40;
} // namespace at

template <class Integer>
Integer get(const char* bytes, std::size_t offset) {
  Integer out = 0;
  for (std::size_t i = 0; i < sizeof out; ++i)
    out = static_cast<Integer>(
      out | static_cast<Integer>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i));
  return out;
}

template <class Integer>
void set(char* bytes, std::size_t offset, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes[offset + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

/// Time of building out of the superblock, and a root that does not depend on where the tree lay.
result<void> make_equal(const std::filesystem::path& image) {
  auto what = fmt::format("rewrite superblock of {}", image.string());
  file_descriptor file{::open(image.c_str(), O_RDWR | O_CLOEXEC)};
  if (!file)
    return errno_error(errno, what);
  std::array<char, block_bytes - superblock_offset> super{};
  if (::pread(file.get(), super.data(), super.size(), superblock_offset)
      != static_cast<ssize_t>(super.size()))
    return error{errc::corrupt, what + ": shorter than one block"};
  if (get<std::uint32_t>(super.data(), 0) != superblock_magic)
    return error{errc::corrupt, what + ": no EROFS superblock"};

  auto root_offset =
    static_cast<off_t>(get<std::uint32_t>(super.data(), at::meta_block) * block_bytes
                       + get<std::uint16_t>(super.data(), at::root_nid) * inode_slot_bytes);
  bool root_in_super_block = root_offset < static_cast<off_t>(block_bytes);
  std::array<char, 64> inode{};
  if (::pread(file.get(), inode.data(), inode.size(), root_offset)
      != static_cast<ssize_t>(inode.size()))
    return error{errc::corrupt, what + ": no root inode"};
  bool extended = (get<std::uint16_t>(inode.data(), at::format) & 1) != 0;
  if (!extended)
    return error{errc::corrupt, what + ": the root inode is not of the extended form"};
  set<std::uint16_t>(inode.data(), at::mode, S_IFDIR | 0755);
  set<std::uint32_t>(inode.data(), at::uid, 0);
  set<std::uint32_t>(inode.data(), at::gid, 0);
  set<std::uint64_t>(inode.data(), at::mtime, 0);
  set<std::uint32_t>(inode.data(), at::mtime_ns, 0);
  if (::pwrite(file.get(), inode.data(), inode.size(), root_offset)
      != static_cast<ssize_t>(inode.size()))
    return errno_error(errno, what);
  // The checksum covers the whole block, which holds the first inodes of a small layer.
  if (root_in_super_block)
    std::memcpy(super.data() + (root_offset - superblock_offset), inode.data(), inode.size());

  set<std::uint64_t>(super.data(), at::build_time, 0);
  set<std::uint32_t>(super.data(), at::build_time_ns, 0);
  set<std::uint32_t>(super.data(), at::checksum, 0);
  set<std::uint32_t>(super.data(), at::checksum, crc32c(~0u, {super.data(), super.size()}));
  if (::pwrite(file.get(), super.data(), super.size(), superblock_offset)
      != static_cast<ssize_t>(super.size()))
    return errno_error(errno, what);
  if (::fsync(file.get()) != 0)
    return errno_error(errno, what + ": fsync");
  return {};
}

result<void> add_file(sha256& digest, const std::filesystem::path& path) {
  auto what = fmt::format("digest {}", path.string());
  file_descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file)
    return errno_error(errno, what);
  std::string buffer(1 << 20, '\0');
  for (;;) {
    auto got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0)
      return errno_error(errno, what);
    if (got == 0)
      return {};
    digest.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

} // namespace

result<void> write_erofs_image(const std::filesystem::path& tree,
                               const std::filesystem::path& folder,
                               const std::vector<std::string>& excluded) {
  auto image = folder / layer_image_file;
  auto blob = folder / layer_blob_file;
  child_command command;
  command.argv = {"mkfs.erofs", "--quiet",
                  // The short form drops times of files that are as old as the image.
                  "-Eforce-inode-extended", "--preserve-mtime", "-U",
                  "00000000-0000-0000-0000-000000000000", "--chunksize=4096",
                  "--blobdev=" + blob.string()};
  for (const auto& x : excluded)
    command.argv.push_back("--exclude-path=" + x);
  command.argv.push_back(image.string());
  command.argv.push_back(tree.string());
  command.env = {{"LC_ALL", "C"}};
  command.log = folder / "mkfs.log";
  if (auto ok = run(command); !ok)
    return ok;
  std::error_code ignored;
  std::filesystem::remove(command.log, ignored);
  if (auto ok = make_equal(image); !ok)
    return ok;
  file_descriptor content{::open(blob.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!content || ::fsync(content.get()) != 0)
    return errno_error(errno, fmt::format("fsync {}", blob.string()));
  return {};
}

result<layer_digest> digest_of_image(const std::filesystem::path& folder) {
  sha256 digest;
  for (auto name : {layer_image_file, layer_blob_file})
    if (auto ok = add_file(digest, folder / name); !ok)
      return ok.error();
  return layer_digest{"sha256-" + std::move(digest).hex()};
}

} // namespace dsec
