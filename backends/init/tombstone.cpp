#include "backends/init/tombstone.hpp"

#include "backends/kill_point.hpp"

#include <kj/io.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

result<void> write_tombstone(int run_dir, const std::string& sandbox_id, const char* word,
                             const std::string& detail) {
  const auto name = sandbox_id + ".end";
  const auto draft = name + ".tmp";
  const auto text = std::string(word) + "\n" + detail + "\n";
  kill_point(crash_role::init);
  kj::AutoCloseFd file{
    ::openat(run_dir, draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.get() < 0)
    return errno_error(errno, "create " + draft);
  if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())
      || ::fsync(file) != 0)
    return errno_error(errno, "write " + draft);
  if (::renameat(run_dir, draft.c_str(), run_dir, name.c_str()) != 0)
    return errno_error(errno, "rename " + draft + " to " + name);
  kill_point(crash_role::init);
  return {};
}

} // namespace dsec::init
