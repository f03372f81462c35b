#include "sdk/embed/local_tree.hpp"

#include "backends/rootfs/file_descriptor.hpp"
#include "backends/tree/extract.hpp"
#include "backends/tree/pack.hpp"
#include "backends/tree/refusals.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <iterator>

namespace dsec {

namespace {

file_descriptor open_folder(const std::string& path) {
  return file_descriptor{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

} // namespace

result<local_source> find_local(const std::filesystem::path& from) {
  local_source x{from.native(), false};
  auto found = look_here(is_content(x.path) ? x.path + "/." : x.path);
  if (!found)
    return found.error();
  if (found->type == file_type::other)
    return error{errc::invalid_argument,
                 fmt::format("{}: it is a device, a FIFO or a socket", x.path)};
  x.is_directory = found->type == file_type::directory;
  return x;
}

result<void> pack_local(const local_source& from, const std::string& top, archive_target& to,
                        tree_report& done) {
  auto [folder, name] = folder_and_name(from.path);
  auto open = open_folder(folder);
  if (!open)
    return errno_error(errno, fmt::format("pack {}: open {}", from.path, folder));
  refusals refused{done};
  return pack_tree(
    open.get(), name, {top, false}, to, fmt::format("pack {}", from.path),
    [&](std::string_view path, std::string_view why) { refused.add(path, why); }, done);
}

result<void> unpack_local(archive_source& from, const landing& at, tree_report& done) {
  std::error_code failed;
  bool is_new = std::filesystem::create_directories(at.folder, failed);
  auto what = fmt::format("unpack into {}", at.folder);
  if (failed)
    return errno_error(failed.value(), what);
  auto open = open_folder(at.folder);
  if (!open)
    return errno_error(errno, what);
  extract_rules rules;
  if (!at.top.empty())
    rules.top = at.top;
  rules.set_root = is_new && at.top.empty();
  refusals refused{done};
  return extract_archive(
    from, open.get(), rules, what,
    [&](std::string_view path, std::string_view why) { refused.add(path, why); }, done);
}

result<tree_report>
both(const std::string& what, bool is_directory, tree_report packed, tree_report unpacked) {
  auto one = std::move(unpacked);
  one.refused_total += packed.refused_total;
  one.refused.insert(one.refused.begin(), std::make_move_iterator(packed.refused.begin()),
                     std::make_move_iterator(packed.refused.end()));
  if (one.refused.size() > refusals_told_max)
    one.refused.resize(refusals_told_max);
  if (!is_directory && one.entries == 0 && !one.refused.empty())
    return error{errc::invalid_argument, fmt::format("{}: {}", what, one.refused.front().why)};
  return one;
}

} // namespace dsec
