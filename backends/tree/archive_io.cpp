#include "backends/tree/archive_io.hpp"

#include <cerrno>
#include <unistd.h>

namespace dsec {

result<std::string_view> archive_file_source::read() {
  for (;;) {
    auto n = ::read(file_, buffer_, sizeof buffer_);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno_error(errno, "read the archive");
    return std::string_view{buffer_, static_cast<std::size_t>(n)};
  }
}

result<void> archive_file_target::write(std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno_error(errno, "write the archive");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

} // namespace dsec
