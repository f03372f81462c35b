#include "backends/tree/draft.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace dsec {

std::string draft_name() {
  unsigned long long number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  char text[40];
  std::snprintf(text, sizeof text, ".dsec-new-%016llx", number);
  return text;
}

draft::draft(int folder)
  : folder_{folder},
    file_{::openat(folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600)} {
  if (file_)
    return;
  name_ = draft_name();
  file_ = file_descriptor{
    ::openat(folder, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file_)
    name_.clear();
}

draft::~draft() {
  if (!name_.empty())
    ::unlinkat(folder_, name_.c_str(), 0);
}

int draft::place(const std::string& name, replacing what) {
  if (name_.empty()) {
    // Only whoever opened it may give it a name like this.
    auto link_as = [&](const std::string& as) {
      return ::linkat(file_.get(), "", folder_, as.c_str(), AT_EMPTY_PATH) == 0 ? 0 : errno;
    };
    int number = what == replacing::nothing ? link_as(name) : EEXIST;
    if (number != EEXIST)
      return number;
    auto passing = draft_name();
    number = link_as(passing);
    if (number != 0)
      return number;
    name_ = std::move(passing);
  }
  if (::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0)
    return errno;
  name_.clear();
  return 0;
}

int place_draft(int folder, const std::string& draft, const std::string& name) {
  const int number = ::renameat(folder, draft.c_str(), folder, name.c_str()) == 0 ? 0 : errno;
  // Two names of one file are left as they are, and that is no failure.
  ::unlinkat(folder, draft.c_str(), 0);
  return number;
}

} // namespace dsec
