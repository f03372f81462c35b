#pragma once

#include "backends/rootfs/file_descriptor.hpp"

#include <string>

namespace dsec {

/// The name of what is not complete yet, beside its place: ".dsec-new-" and 16 hex digits, by
/// chance. What bears such a name and belongs to nobody was left by a process that was killed, and
/// may be removed.
std::string draft_name();

/// What seems to be at the place: a guess, which makes the usual case quick.
enum class replacing { nothing, something };

/// A new file that takes the place of another when it is complete, in one step: until then, and if
/// it never is, what was there stays as it was. It has no name until then, so that nothing is left
/// of it whoever is killed; on file systems that cannot do that, a `draft_name` beside its place. A
/// draft that goes without having been placed is removed. Its folder must outlive it.
class draft {
public:
  /// Mode 0600. Without a file if it could not be made; errno says why.
  explicit draft(int folder);
  ~draft();
  draft(const draft&) = delete;
  draft& operator=(const draft&) = delete;

  /// -1: it could not be made.
  int file() const {
    return file_.get();
  }

  /// Once. Replaces what is no directory. 0 or an errno value.
  int place(const std::string& name, replacing what);

private:
  int folder_;
  std::string name_; ///< Empty: it has none.
  file_descriptor file_;
};

/// Gives a link that bears a draft's name in `folder` its own, replacing what is no directory; if
/// that fails, it is removed. 0 or an errno value.
int place_draft(int folder, const std::string& draft, const std::string& name);

} // namespace dsec
