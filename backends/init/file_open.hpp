#pragma once

#include "backends/init/file_errands.hpp"

#include <sys/stat.h>

namespace dsec::init {

/// Opens `request.path` for `request.task` (any but `list`) as if `root` were the root directory:
/// links and ".." lead to places beneath it, links of /proc to none. What else the path meets is in
/// the answer's status: an errno value, ENXIO for what is no regular file, EFBIG for one that says
/// it has no bytes and has more than `unsized_bytes_max`. Allocates nothing.
file_answer open_in_root(const file_request& request, int root);

/// What `status` says of an open file or of an entry of a directory.
file_reading reading_of(const struct stat& from);

/// openat2 as if `root` were the root directory, with `flags` and O_CLOEXEC; -1 and errno.
kj::AutoCloseFd open_beneath(int root, const char* path, std::uint64_t flags, mode_t permissions);

/// Makes the directories above the last component of `path`, 0755. Returns 0 or an errno value.
int make_parents(int root, const char* path);

} // namespace dsec::init
