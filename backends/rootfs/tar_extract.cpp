#include "backends/rootfs/tar_extract.hpp"

#include "backends/rootfs/file_descriptor.hpp"
#include "backends/rootfs/tree_policy.hpp"
#include "backends/tree/extract.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <string_view>

namespace dsec {

result<void> extract_tar(int source, const std::filesystem::path& root, std::string_view what) {
  file_descriptor folder{::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!folder)
    return errno_error(errno, fmt::format("{}: open {}", what, root.string()));
  refused_entries refused;
  tree_report done;
  archive_file_source from{source};
  extract_rules rules;
  rules.what = extract_rules::use::layer;
  auto ok = extract_archive(
    from, folder.get(), rules, what,
    [&](std::string_view path, std::string_view why) { refused.add(path, why); }, done);
  if (ok && !refused.empty())
    return refused.to_error(what);
  return ok;
}

} // namespace dsec
