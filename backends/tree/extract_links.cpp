#include "backends/rootfs/archive_paths.hpp"
#include "backends/tree/extraction.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dsec {

result<void> extraction::add_symlink(const std::string& name, archive_entry* entry) {
  const char* target = archive_entry_symlink(entry);
  if (!target || !*target) {
    refuse("link to nothing");
    return {};
  }
  if (layer() && climbs_out(name, target)) {
    refuse(fmt::format("link out of the tree, to {}", printable(target)));
    return {};
  }
  auto at = file_place(name);
  if (!at)
    return at.error();
  const auto& parent = at->folder;
  const auto draft = draft_name();
  if (::symlinkat(target, parent.get(), draft.c_str()) != 0)
    return failed("link", name, errno);
  auto with = attributes_of(entry);
  const timespec times[] = {with.modified, with.modified};
  result<void> ok;
  if (::fchownat(parent.get(), draft.c_str(), with.uid, with.gid, AT_SYMLINK_NOFOLLOW) != 0)
    ok = failed("change owner of", name, errno);
  else if (::utimensat(parent.get(), draft.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    ok = failed("change time of", name, errno);
  if (!ok) {
    ::unlinkat(parent.get(), draft.c_str(), 0);
    return ok;
  }
  if (int number = place_draft(parent.get(), draft, at->name))
    return failed("replace", name, number);
  ++done_.entries;
  return {};
}

result<void> extraction::add_hard_link(const std::string& name, std::string_view raw_target) {
  auto target = archive_path(raw_target);
  if (target && !target->empty())
    target = name_of(raw_target);
  if (!target || target->empty()) {
    refuse(fmt::format("hard link out of the tree, to {}", printable(raw_target)));
    return {};
  }
  if (*target == name)
    return {};
  const auto [source_name, source_last] = split(*target);
  auto source = open_folder(source_name);

  struct stat status {};

  bool linkable =
    source && ::fstatat(source->get(), source_last.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
    && (layer() ? !S_ISDIR(status.st_mode) : S_ISREG(status.st_mode) || S_ISLNK(status.st_mode));
  if (!linkable) {
    refuse(fmt::format("hard link to {}, which is no file before it", printable(raw_target)));
    failed_number_ = 0;
    return {};
  }
  auto at = file_place(name);
  if (!at)
    return at.error();
  const int from = source->get(), to = at->folder.get();
  auto link_as = [from, to, &last = source_last](const std::string& as) {
    return ::linkat(from, last.c_str(), to, as.c_str(), 0) == 0 ? 0 : errno;
  };
  int number = at->what == replacing::nothing ? link_as(at->name) : EEXIST;
  if (number == EEXIST) {
    const auto draft = draft_name();
    number = link_as(draft);
    if (number == 0)
      number = place_draft(to, draft, at->name);
  }
  if (number != 0)
    return failed("link", name, number);
  ++done_.entries;
  return {};
}

} // namespace dsec
